#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_access.h"
#include "text/jinja_eval.h"
#include "text/jinja_print.h"

namespace octavo::jinja {

Result<Value> Evaluator::eval(const Expr& expr) {
  OCTAVO_CHECK_OK(enter());
  const int outer_line = context_.line();
  context_.at_line(expr.line);
  auto value = std::visit([this](const auto& node) { return eval_node(node); }, expr.node);
  if (value) context_.at_line(outer_line);
  --depth_;
  return value;
}

Result<const Value*> Evaluator::find_variable(std::string_view name) {
  size_t visited = 0;
  const Value* value = scope_->find(name, visited);
  OCTAVO_CHECK_OK(context_.spend(visited / 16));
  if (value) return value;
  const auto global = globals_.find(name);
  return global == globals_.end() ? nullptr : &global->second;
}

Result<Value> Evaluator::eval_or(const ExprPtr& expr, Value otherwise) {
  if (!expr) return otherwise;
  return eval(*expr);
}

Result<Value> Evaluator::eval_node(const Name& name) {
  OCTAVO_TRY(const Value* value, find_variable(name.name));
  if (value) return *value;
  return Value(undefined(fmt::format("'{}' is undefined", name.name.substr(0, 80))));
}

Result<Value> Evaluator::eval_node(const ListDisplay& list) {
  std::vector<Value> items;
  for (const ExprPtr& expr : list.items) {
    OCTAVO_TRY(Value item, eval(*expr));
    items.push_back(std::move(item));
  }
  return context_.sequence(list.kind, std::move(items));
}

Result<Value> Evaluator::eval_node(const DictDisplay& dict) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key_expr, value_expr] : dict.entries) {
    OCTAVO_TRY(Value key, eval(*key_expr));
    OCTAVO_TRY(Value value, eval(*value_expr));
    entries.emplace_back(std::move(key), std::move(value));
  }
  return context_.dict(std::move(entries));
}

Result<Value> Evaluator::eval_node(const GetAttribute& get) {
  OCTAVO_TRY(const Value object, eval(*get.object));
  return get_attribute(context_, object, get.name);
}

Result<Value> Evaluator::eval_node(const GetItem& get) {
  OCTAVO_TRY(const Value object, eval(*get.object));
  OCTAVO_TRY(const Value key, eval(*get.key));
  return get_item(context_, object, key);
}

Result<Value> Evaluator::eval_node(const GetSlice& get) {
  OCTAVO_TRY(const Value object, eval(*get.object));
  SliceBounds bounds;
  OCTAVO_TRY(bounds.start, eval_or(get.start, None{}));
  OCTAVO_TRY(bounds.stop, eval_or(get.stop, None{}));
  OCTAVO_TRY(bounds.step, eval_or(get.step, None{}));
  return get_slice(context_, object, bounds);
}

Result<Arguments> Evaluator::eval_arguments(const CallArguments& arguments) {
  Arguments values;
  for (const ExprPtr& expr : arguments.positional) {
    OCTAVO_TRY(Value value, eval(*expr));
    values.positional.push_back(std::move(value));
  }
  for (const auto& [name, expr] : arguments.named) {
    OCTAVO_TRY(Value value, eval(*expr));
    values.named.emplace_back(name, std::move(value));
  }
  if (arguments.more_positional) {
    OCTAVO_TRY(const Value more, eval(*arguments.more_positional));
    OCTAVO_TRY(const SequencePtr items, elements(context_, more));
    OCTAVO_CHECK_OK(context_.spend(items->items.size()));
    values.positional.insert(values.positional.end(), items->items.begin(), items->items.end());
  }
  if (arguments.more_named) {
    OCTAVO_TRY(const Value more, eval(*arguments.more_named));
    OCTAVO_CHECK_OK(add_named(values, more));
  }
  if (values.positional.size() + values.named.size() > kMaxUnpacked)
    return context_.exceeded(fmt::format("a call with more than {} arguments", kMaxUnpacked));
  return values;
}

Result<void> Evaluator::add_named(Arguments& values, const Value& more) {
  const Dict* dict = as_dict(more);
  if (!dict) return context_.error(fmt::format("'**' of a {}", type_name(more)));
  if (dict->entries.size() > kMaxUnpacked)
    return context_.exceeded(fmt::format("a call with more than {} arguments", kMaxUnpacked));
  for (const auto& [key, value] : dict->entries) {
    const Text* name = as_text(key);
    if (!name) return context_.error("'**' of a dict with a key that is not a str");
    const bool twice = std::any_of(values.named.begin(), values.named.end(),
                                   [&](const auto& other) { return other.first == name->bytes(); });
    if (twice)
      return context_.error(
          fmt::format("the argument '{}' is given twice", name->bytes().substr(0, 80)));
    OCTAVO_CHECK_OK(context_.spend(1 + values.named.size() / 16));
    values.named.emplace_back(name->bytes(), value);
    values.content_names |= name->has_content();
  }
  return {};
}

Result<Value> Evaluator::eval_node(const CallExpr& call_expr) {
  OCTAVO_TRY(const Value callee, eval(*call_expr.callee));
  OCTAVO_TRY(const Arguments arguments, eval_arguments(call_expr.arguments));
  return call(callee, arguments);
}

Result<Value> Evaluator::eval_node(const FilterExpr& filter) {
  OCTAVO_TRY(const Value input, eval_or(filter.input, block_input_ ? *block_input_ : Undefined{}));
  OCTAVO_TRY(const Arguments arguments, eval_arguments(filter.arguments));
  if (!filter.filter)
    return context_.unsupported(fmt::format("unknown filter '{}'", filter.unknown));
  return invoke(context_, *filter.filter, input, arguments);
}

Result<Value> Evaluator::eval_node(const TestExpr& test) {
  OCTAVO_TRY(const Value input, eval(*test.input));
  OCTAVO_TRY(const Arguments arguments, eval_arguments(test.arguments));
  if (!test.test) return context_.unsupported(fmt::format("unknown test '{}'", test.unknown));
  return invoke(context_, *test.test, input, arguments);
}

Result<Value> Evaluator::eval_node(const Unary& unary) {
  OCTAVO_TRY(const Value operand, eval(*unary.operand));
  switch (unary.op) {
    case UnaryOp::negate:
      return negate(context_, operand);
    case UnaryOp::plus:
      return plus(context_, operand);
    case UnaryOp::logical_not:
      break;
  }
  return !truthy(operand);
}

Result<Value> Evaluator::eval_node(const Binary& node) {
  OCTAVO_TRY(const Value left, eval(*node.left));
  OCTAVO_TRY(const Value right, eval(*node.right));
  return binary(context_, node.op, left, right);
}

Result<Value> Evaluator::eval_node(const Logical& logical) {
  OCTAVO_TRY(Value left, eval(*logical.left));
  if (truthy(left) != logical.is_and) return left;
  return eval(*logical.right);
}

Result<Value> Evaluator::eval_node(const Concat& concat) {
  Text joined;
  for (const ExprPtr& expr : concat.parts) {
    OCTAVO_TRY(const Value part, eval(*expr));
    OCTAVO_TRY(const Text text, to_text(context_, part));
    OCTAVO_CHECK_OK(context_.append(joined, text));
  }
  return context_.text(std::move(joined));
}

Result<Value> Evaluator::eval_node(const Comparison& comparison) {
  OCTAVO_TRY(Value left, eval(*comparison.first));
  for (const auto& [op, expr] : comparison.rest) {
    OCTAVO_TRY(Value right, eval(*expr));
    OCTAVO_TRY(const bool holds, compare(context_, op, left, right));
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

Result<Value> Evaluator::eval_node(const Conditional& conditional) {
  OCTAVO_TRY(const Value test, eval(*conditional.test));
  if (truthy(test)) return eval(*conditional.then);
  if (conditional.otherwise) return eval(*conditional.otherwise);
  return Value(undefined("an 'if' without 'else' whose condition is false"));
}

}  // namespace octavo::jinja
