// Expressions, from `or` down to literals: one function per level of binding, as in Jinja's
// grammar.
#pragma once

#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja_ast.h"
#include "text/jinja_token_stream.h"

namespace octavo::jinja {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : stream_(stream) {}

  // with_conditional: `a if b else c` is part of it; not so after `in` of a for and in {% if %}.
  Result<ExprPtr> expression(bool with_conditional = true);
  // Also `a, b` without brackets. A name of stop_words ends it.
  Result<ExprPtr> tuple(bool with_conditional = true, std::string_view stop_word = "");
  // What an assignment writes to. Ends before `in`, `=` or the tag's end.
  Result<Target> target(bool with_field);
  // `name(args) | name ...` applied to `input`, which is null for {% filter %} and {% set %}
  // blocks.
  Result<ExprPtr> filters(ExprPtr input, bool first_without_pipe);

  // Guards recursion, here and in the statement parser.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser) : depth_(parser.nesting_) { ++depth_; }
    ~Nesting() { --depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    int& depth_;
  };
  Result<void> check_nesting() const;

  // Filters and tests of no known name. In the branches of a condition they are an error only once
  // they are reached, elsewhere at once; a block that makes a scope is elsewhere again.
  class Unknown {
   public:
    explicit Unknown(ExpressionParser& parser)
        : errors_(parser.unknown_), before_(std::ssize(errors_)) {}
    void forgive() { errors_.erase(errors_.begin() + before_, errors_.end()); }
    Result<void> refuse() const;  // the first of them

   private:
    std::vector<Error>& errors_;
    std::ptrdiff_t before_;
  };

  // Macro bodies being parsed, outermost first: they learn which special names they use.
  std::vector<MacroDefinition*> macros;
  std::set<std::string, std::less<>> variables;  // names that are read, of any scope

 private:
  friend class Nesting;
  template <class Node>
  Result<ExprPtr> make(int line, Node node, int deepest_part = 0);

  Result<ExprPtr> conditional();
  Result<ExprPtr> logical_or();
  Result<ExprPtr> logical_and();
  Result<ExprPtr> logical_not();
  Result<ExprPtr> comparison();
  Result<ExprPtr> sum();
  Result<ExprPtr> concatenation();
  Result<ExprPtr> product();
  Result<ExprPtr> power();
  Result<ExprPtr> unary(bool with_filters = true);
  Result<ExprPtr> primary();
  Result<ExprPtr> name();
  Result<ExprPtr> string();
  Result<ExprPtr> list();
  Result<ExprPtr> dict();
  Result<ExprPtr> postfix(ExprPtr expr);
  Result<ExprPtr> attribute(ExprPtr object);
  Result<ExprPtr> subscript(ExprPtr object);
  Result<ExprPtr> slice(ExprPtr object, ExprPtr start, int line);
  Result<ExprPtr> call(ExprPtr callee);
  Result<ExprPtr> filters_and_tests(ExprPtr expr);
  Result<ExprPtr> filter(ExprPtr input);
  Result<ExprPtr> test(ExprPtr input);
  Result<CallArguments> arguments();
  Result<void> argument(CallArguments& arguments);
  Result<void> unpacked_argument(CallArguments& arguments);
  Result<Target> single_target(bool with_field);

  void note_unknown(std::string_view kind, std::string_view name);

  TokenStream& stream_;
  int nesting_ = 0;
  std::vector<Error> unknown_;
};

}  // namespace octavo::jinja
