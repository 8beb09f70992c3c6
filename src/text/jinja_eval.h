// Runs a parsed template: statements write text, expressions give values.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja_ast.h"
#include "text/jinja_context.h"

namespace octavo::jinja {

// Variables of a block that has its own: the template, a loop's round, a macro call. Names point
// into the tree or the input. Reading looks outwards, writing stays here.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;
  bool captured = false;  // a macro was made here

  // visited grows by the variables looked at.
  const Value* find(std::string_view name, size_t& visited) const;
  void set(std::string_view name, Value value);
};

struct Macro {
  const MacroDefinition* definition;
  std::shared_ptr<Scope> closure;
};

class Evaluator {
 public:
  using Variables = std::vector<std::pair<std::string_view, Value>>;

  // The variables' names outlive the evaluator; so does the context, and the tree that is rendered.
  Evaluator(Context& context, Variables variables);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  Result<Text> render(const Body& body);

 private:
  enum class Flow { next, leave_loop, next_round };
  class InScope;

  Result<Flow> run(const Body& body);
  Result<Flow> run_node(const Output& output);
  Result<Flow> run_node(const If& branches);
  Result<Flow> run_node(const For& loop);
  Result<Flow> run_node(const Set& set);
  Result<Flow> run_node(const SetBlock& set);
  Result<Flow> run_node(const MacroDefinition& macro);
  Result<Flow> run_node(const CallBlock& block);
  Result<Flow> run_node(const FilterBlock& block);
  Result<Flow> run_node(const With& with);
  Result<Flow> run_node(const ScopedBlock& block);
  Result<Flow> run_node(const Break&) { return Flow::leave_loop; }
  Result<Flow> run_node(const Continue&) { return Flow::next_round; }

  Result<SequencePtr> loop_items(const For& loop, const Value& walked);
  Result<Flow> run_loop(const For& loop, const Value& walked, int depth);
  Result<Value> call_loop(const Loop& loop, const Arguments& arguments);
  void keep_scope();  // until the end: something owns the current scope that the scope may own
  Result<Flow> round(const For& loop, const LoopPtr& state, size_t index);
  Result<void> assign(const Target& target, Value value);
  Result<void> assign_field(const Target& target, Value value);
  Result<Flow> run_scoped(const Body& body);
  // The text that the body writes, instead of writing it to the output; flow: how it ended.
  Result<Value> captured(const Body& body, Flow& flow);
  Result<Value> filtered(const ExprPtr& filter, const Value& input);
  Result<void> write(const Value& value);

  Result<Value> eval(const Expr& expr);
  Result<Value> eval_node(const Literal& literal) { return literal.value; }
  Result<Value> eval_node(const Name& name);
  Result<Value> eval_node(const ListDisplay& list);
  Result<Value> eval_node(const DictDisplay& dict);
  Result<Value> eval_node(const GetAttribute& get);
  Result<Value> eval_node(const GetItem& get);
  Result<Value> eval_node(const GetSlice& get);
  Result<Value> eval_node(const CallExpr& call);
  Result<Value> eval_node(const FilterExpr& filter);
  Result<Value> eval_node(const TestExpr& test);
  Result<Value> eval_node(const Unary& unary);
  Result<Value> eval_node(const Binary& node);
  Result<Value> eval_node(const Logical& logical);
  Result<Value> eval_node(const Concat& concat);
  Result<Value> eval_node(const Comparison& comparison);
  Result<Value> eval_node(const Conditional& conditional);

  Result<const Value*> find_variable(std::string_view name);  // null if there is none
  Result<Value> eval_or(const ExprPtr& expr, Value otherwise);
  Result<Arguments> eval_arguments(const CallArguments& arguments);
  Result<void> add_named(Arguments& values, const Value& more);
  Result<Value> call(const Value& callee, const Arguments& arguments);
  Result<Value> call_joiner(Namespace& joiner, const Arguments& arguments);
  Result<Value> call_macro(const Macro& macro, const Arguments& arguments);
  Result<void> bind_parameters(const MacroDefinition& macro, const Arguments& arguments);
  static bool takes(const MacroDefinition& macro, std::string_view name);
  Result<void> bind_extras(const MacroDefinition& macro, const Arguments& arguments);
  Result<Value> make_macro(const MacroDefinition& definition);
  Result<void> enter();  // one level deeper; the caller decrements depth_ when it succeeded

  Context& context_;
  std::map<std::string_view, Value> globals_;  // behind all scopes
  std::shared_ptr<Scope> scope_;
  Text* output_ = nullptr;
  const Value* block_input_ = nullptr;  // what a FilterExpr without input filters
  int depth_ = 0;
  std::vector<std::shared_ptr<Scope>>
      captured_scopes_;  // emptied at the end: macros and their scopes own each other
};

}  // namespace octavo::jinja
