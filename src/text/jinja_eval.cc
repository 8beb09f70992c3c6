#include "text/jinja_eval.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_access.h"
#include "text/jinja_markup.h"
#include "text/jinja_print.h"

namespace octavo::jinja {

const Value* Scope::find(std::string_view name, size_t& visited) const {
  for (const Scope* scope = this; scope; scope = scope->parent.get())
    for (const auto& [known, value] : scope->variables) {
      ++visited;
      if (known == name) return &value;
    }
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto& [known, old] : variables) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  variables.emplace_back(name, std::move(value));
}

// Makes a scope current, and the old one again at its end.
class Evaluator::InScope {
 public:
  InScope(Evaluator& evaluator, std::shared_ptr<Scope> parent)
      : evaluator_(evaluator), outer_(std::exchange(evaluator.scope_, std::make_shared<Scope>())) {
    evaluator.scope_->parent = std::move(parent);
  }
  ~InScope() { evaluator_.scope_ = std::move(outer_); }
  InScope(const InScope&) = delete;
  InScope& operator=(const InScope&) = delete;

 private:
  Evaluator& evaluator_;
  std::shared_ptr<Scope> outer_;
};

Evaluator::Evaluator(Context& context, Variables variables)
    : context_(context), scope_(std::make_shared<Scope>()) {
  for (const Function& function : global_functions()) globals_[function.name] = &function;
  for (auto& [name, value] : variables) globals_[name] = std::move(value);
}

Evaluator::~Evaluator() {
  for (const auto& scope : captured_scopes_) scope->variables.clear();
}

Result<Text> Evaluator::render(const Body& body) {
  Text output;
  output_ = &output;
  const InScope scope(*this, scope_);
  OCTAVO_CHECK_OK(run(body));
  return output;
}

Result<void> Evaluator::enter() {
  OCTAVO_CHECK_OK(context_.spend(1));
  if (depth_ >= kMaxEvalDepth)
    return context_.exceeded(
        fmt::format("more than {} expressions, blocks and calls inside each other", kMaxEvalDepth));
  ++depth_;
  return {};
}

Result<Evaluator::Flow> Evaluator::run(const Body& body) {
  OCTAVO_CHECK_OK(enter());
  Result<Flow> flow = Flow::next;
  for (const Statement& statement : body) {
    context_.at_line(statement.line);
    if (auto status = context_.spend(1); !status) {
      flow = tl::make_unexpected(std::move(status).error());
      break;
    }
    flow = std::visit([this](const auto& node) { return run_node(node); }, statement.node);
    if (!flow || *flow != Flow::next) break;
  }
  --depth_;
  return flow;
}

Result<Evaluator::Flow> Evaluator::run_scoped(const Body& body) {
  const InScope scope(*this, scope_);
  return run(body);
}

Result<void> Evaluator::write(const Value& value) {
  if (const Text* text = as_text(value)) return context_.append(*output_, *text);
  OCTAVO_TRY(const Text text, to_text(context_, value));
  return context_.append(*output_, text);
}

Result<Evaluator::Flow> Evaluator::run_node(const Output& output) {
  OCTAVO_TRY(const Value value, eval(*output.expression));
  OCTAVO_CHECK_OK(write(value));
  return Flow::next;
}

Result<Evaluator::Flow> Evaluator::run_node(const If& branches) {
  for (const auto& [test, body] : branches.branches) {
    OCTAVO_TRY(const Value value, eval(*test));
    if (truthy(value)) return run(body);
  }
  return run(branches.otherwise);
}

Result<SequencePtr> Evaluator::loop_items(const For& loop, const Value& walked) {
  OCTAVO_TRY(SequencePtr all, elements(context_, walked));
  if (!loop.filter) return all;
  std::vector<Value> kept;
  for (const Value& item : all->items) {
    const InScope scope(*this, scope_);
    OCTAVO_CHECK_OK(assign(loop.target, item));
    OCTAVO_TRY(const Value keep, eval(*loop.filter));
    if (truthy(keep)) kept.push_back(item);
  }
  OCTAVO_TRY(const Value list, context_.sequence(Sequence::Kind::list, std::move(kept)));
  return std::get<SequencePtr>(list);
}

Result<Evaluator::Flow> Evaluator::round(const For& loop, const LoopPtr& state, size_t index) {
  OCTAVO_CHECK_OK(context_.spend(1));
  const InScope scope(*this, scope_);
  state->index = index;
  scope_->set("loop", state);
  OCTAVO_CHECK_OK(assign(loop.target, state->items->items[index]));
  return run(loop.body);
}

Result<Evaluator::Flow> Evaluator::run_node(const For& loop) {
  OCTAVO_TRY(const Value walked, eval(*loop.items));
  return run_loop(loop, walked, 0);
}

Result<Evaluator::Flow> Evaluator::run_loop(const For& loop, const Value& walked, int depth) {
  OCTAVO_TRY(const SequencePtr items, loop_items(loop, walked));
  if (items->items.empty()) return run_scoped(loop.otherwise);
  OCTAVO_TRY(const LoopPtr state, context_.loop(items, depth));
  if (loop.recursive) {
    keep_scope();
    state->statement = &loop;
    state->scope = scope_;
  }
  for (size_t i = 0; i < items->items.size(); ++i) {
    OCTAVO_TRY(const Flow flow, round(loop, state, i));
    if (flow == Flow::leave_loop) break;
  }
  return Flow::next;
}

// `loop(items)` in a recursive loop: what the whole loop writes for these items, seeing what the
// first of its kind saw.
Result<Value> Evaluator::call_loop(const Loop& loop, const Arguments& arguments) {
  if (!loop.statement) return context_.error("'loop' can be called in a 'recursive' loop only");
  if (arguments.positional.size() != 1 || !arguments.named.empty())
    return context_.error("'loop' takes one argument");
  OCTAVO_CHECK_OK(enter());
  Text text;
  Text* const outer = std::exchange(output_, &text);
  const InScope scope(*this, loop.scope);
  const auto ended = run_loop(*loop.statement, arguments.positional[0], loop.level + 1);
  output_ = outer;
  --depth_;
  if (!ended) return tl::make_unexpected(ended.error());
  return context_.text(std::move(text));
}

Result<void> Evaluator::assign_field(const Target& target, Value value) {
  OCTAVO_TRY(const Value* variable, find_variable(target.name));
  const auto* space = variable ? get_if<Namespace*>(*variable) : nullptr;
  if (!space || (*space)->kind != Namespace::Kind::plain)
    return context_.error(
        fmt::format("'{}' is no namespace; only a namespace's fields can be set", target.name));
  OCTAVO_CHECK_OK(context_.spend((*space)->fields.size() / 8));
  if (Value* field = (*space)->find(target.field))
    *field = std::move(value);
  else
    (*space)->fields.emplace_back(target.field, std::move(value));
  return {};
}

Result<void> Evaluator::assign(const Target& target, Value value) {
  OCTAVO_CHECK_OK(context_.spend(1 + scope_->variables.size() / 16));
  if (target.items.empty()) {
    if (!target.field.empty()) return assign_field(target, std::move(value));
    scope_->set(target.name, std::move(value));
    return {};
  }
  OCTAVO_TRY(const SequencePtr parts, elements(context_, value));
  if (parts->items.size() != target.items.size())
    return context_.error(
        fmt::format("{} values for {} names", parts->items.size(), target.items.size()));
  for (size_t i = 0; i < parts->items.size(); ++i)
    OCTAVO_CHECK_OK(assign(target.items[i], parts->items[i]));
  return {};
}

Result<Evaluator::Flow> Evaluator::run_node(const Set& set) {
  OCTAVO_TRY(Value value, eval(*set.value));
  OCTAVO_CHECK_OK(assign(set.target, std::move(value)));
  return Flow::next;
}

Result<Value> Evaluator::captured(const Body& body, Flow& flow) {
  Text text;
  Text* const outer = std::exchange(output_, &text);
  const auto ended = run_scoped(body);
  output_ = outer;
  OCTAVO_TRY(flow, ended);
  return context_.text(std::move(text));
}

Result<Value> Evaluator::filtered(const ExprPtr& filter, const Value& input) {
  if (!filter) return input;
  const Value* const outer = std::exchange(block_input_, &input);
  auto result = eval(*filter);
  block_input_ = outer;
  return result;
}

Result<Evaluator::Flow> Evaluator::run_node(const SetBlock& set) {
  Flow flow = Flow::next;
  OCTAVO_TRY(const Value text, captured(set.body, flow));
  if (flow != Flow::next) return flow;
  OCTAVO_TRY(Value value, filtered(set.filter, text));
  OCTAVO_CHECK_OK(assign(set.target, std::move(value)));
  return Flow::next;
}

Result<Evaluator::Flow> Evaluator::run_node(const FilterBlock& block) {
  Flow flow = Flow::next;
  OCTAVO_TRY(const Value text, captured(block.body, flow));
  if (flow != Flow::next) return flow;
  OCTAVO_TRY(const Value value, filtered(block.filter, text));
  OCTAVO_CHECK_OK(write(value));
  return Flow::next;
}

Result<Evaluator::Flow> Evaluator::run_node(const With& with) {
  std::vector<Value> values;  // all of them see the outer variables
  for (const auto& [target, expr] : with.values) {
    OCTAVO_TRY(Value value, eval(*expr));
    values.push_back(std::move(value));
  }
  const InScope scope(*this, scope_);
  for (size_t i = 0; i < values.size(); ++i)
    OCTAVO_CHECK_OK(assign(with.values[i].first, std::move(values[i])));
  return run(with.body);
}

Result<Evaluator::Flow> Evaluator::run_node(const ScopedBlock& block) {
  return run_scoped(block.body);
}

void Evaluator::keep_scope() {
  if (!std::exchange(scope_->captured, true)) captured_scopes_.push_back(scope_);
}

Result<Value> Evaluator::make_macro(const MacroDefinition& definition) {
  OCTAVO_CHECK_OK(context_.allocate(sizeof(Macro) + sizeof(Scope)));
  keep_scope();
  return std::make_shared<const Macro>(Macro{&definition, scope_});
}

Result<Evaluator::Flow> Evaluator::run_node(const MacroDefinition& macro) {
  OCTAVO_TRY(Value value, make_macro(macro));
  scope_->set(macro.name, std::move(value));
  return Flow::next;
}

Result<Evaluator::Flow> Evaluator::run_node(const CallBlock& block) {
  const auto& call_expr = std::get<CallExpr>(block.call->node);
  OCTAVO_TRY(const Value callee, eval(*call_expr.callee));
  OCTAVO_TRY(Arguments arguments, eval_arguments(call_expr.arguments));
  OCTAVO_TRY(Value caller, make_macro(block.caller));
  arguments.named.emplace_back("caller", std::move(caller));
  OCTAVO_TRY(const Value text, call(callee, arguments));
  OCTAVO_CHECK_OK(write(text));
  return Flow::next;
}

Result<Value> Evaluator::call(const Value& callee, const Arguments& arguments) {
  if (const auto* method = get_if<MethodPtr>(callee)) {
    const Text* text = as_text((*method)->self);
    return text && text->is_markup()
               ? invoke_on_markup(context_, *(*method)->function, (*method)->self, arguments)
               : invoke(context_, *(*method)->function, (*method)->self, arguments);
  }
  if (const auto* function = get_if<const Function*>(callee))
    return invoke(context_, **function, Undefined{}, arguments);
  if (const auto* loop = get_if<LoopPtr>(callee)) return call_loop(**loop, arguments);
  if (const auto* space = get_if<Namespace*>(callee);
      space && (*space)->kind == Namespace::Kind::joiner)
    return call_joiner(**space, arguments);
  if (const auto* macro = get_if<MacroPtr>(callee)) return call_macro(**macro, arguments);
  if (const auto* missing = get_if<Undefined>(callee)) return context_.undefined_used(*missing);
  return context_.error(fmt::format("a {} cannot be called", type_name(callee)));
}

// A joiner gives nothing the first time, and its text from then on.
Result<Value> Evaluator::call_joiner(Namespace& joiner, const Arguments& arguments) {
  if (!arguments.positional.empty() || !arguments.named.empty())
    return context_.error("a joiner takes no arguments");
  if (!std::exchange(joiner.used, true)) return context_.text("", true);
  return joiner.items[0];
}

Result<Value> Evaluator::call_macro(const Macro& macro, const Arguments& arguments) {
  const int line = context_.line();
  const InScope scope(*this, macro.closure);
  OCTAVO_CHECK_OK(bind_extras(*macro.definition, arguments));
  OCTAVO_CHECK_OK(bind_parameters(*macro.definition, arguments));
  Flow flow = Flow::next;
  auto text = captured(macro.definition->body, flow);
  if (text) context_.at_line(line);
  return text;
}

Result<void> Evaluator::bind_parameters(const MacroDefinition& macro, const Arguments& arguments) {
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& parameter = macro.parameters[i];
    const Value* given = i < arguments.positional.size() ? &arguments.positional[i] : nullptr;
    for (const auto& [name, value] : arguments.named) {
      if (name != parameter.name) continue;
      if (given) return context_.error(fmt::format("macro '{}' got '{}' twice", macro.name, name));
      given = &value;
    }
    Value value =
        given ? *given : undefined(fmt::format("parameter '{}' was not provided", parameter.name));
    if (!given && parameter.otherwise) {
      OCTAVO_TRY(value, eval(*parameter.otherwise));
    }
    scope_->set(parameter.name, std::move(value));
  }
  return {};
}

bool Evaluator::takes(const MacroDefinition& macro, std::string_view name) {
  return std::any_of(macro.parameters.begin(), macro.parameters.end(),
                     [&](const auto& parameter) { return parameter.name == name; });
}

// What no parameter takes: an error, unless the body reads it through `varargs`, `kwargs` or
// `caller`.
Result<void> Evaluator::bind_extras(const MacroDefinition& macro, const Arguments& arguments) {
  std::vector<Value> varargs;
  for (size_t i = macro.parameters.size(); i < arguments.positional.size(); ++i)
    varargs.push_back(arguments.positional[i]);
  if (!varargs.empty() && !macro.uses_varargs)
    return context_.error(
        fmt::format("macro '{}' takes at most {} arguments", macro.name, macro.parameters.size()));
  Value caller = undefined("no caller defined");
  std::vector<std::pair<Value, Value>> kwargs;
  for (const auto& [name, value] : arguments.named) {
    if (takes(macro, name)) continue;
    if (name == "caller" && macro.uses_caller) {
      caller = value;
      continue;
    }
    if (!macro.uses_kwargs)
      return context_.error(fmt::format("macro '{}' has no parameter '{}'", macro.name, name));
    OCTAVO_TRY(Value key, context_.text(name, !arguments.content_names));
    kwargs.emplace_back(std::move(key), value);
  }
  if (macro.uses_varargs) {
    OCTAVO_TRY(Value tuple, context_.sequence(Sequence::Kind::tuple, std::move(varargs)));
    scope_->set("varargs", std::move(tuple));
  }
  if (macro.uses_kwargs) {
    OCTAVO_TRY(Value dict, context_.dict(std::move(kwargs)));
    scope_->set("kwargs", std::move(dict));
  }
  if (macro.uses_caller) scope_->set("caller", std::move(caller));
  return {};
}

}  // namespace octavo::jinja
