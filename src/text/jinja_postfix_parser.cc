// What follows an operand: attributes, subscripts, calls, filters and tests.
#include <fmt/format.h>

#include <algorithm>

#include "text/jinja_expression_depth.h"
#include "text/jinja_expression_parser.h"

namespace octavo::jinja {
namespace {

using Kind = Token::Kind;

// Whether a test's argument may begin here without brackets: `is divisibleby 3`.
bool begins_bare_argument(const TokenStream& stream) {
  if (stream.at_name("else") || stream.at_name("or") || stream.at_name("and")) return false;
  return stream.at(Kind::name) || stream.at(Kind::string) || stream.at(Kind::integer) ||
         stream.at(Kind::number) || stream.at_symbol("(") || stream.at_symbol("[") ||
         stream.at_symbol("{");
}

}  // namespace

Result<ExprPtr> ExpressionParser::postfix(ExprPtr expr) {
  while (true) {
    if (stream_.at_symbol(".")) {
      OCTAVO_TRY(expr, attribute(std::move(expr)));
    } else if (stream_.at_symbol("[")) {
      OCTAVO_TRY(expr, subscript(std::move(expr)));
    } else if (stream_.at_symbol("(")) {
      OCTAVO_TRY(expr, call(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> ExpressionParser::attribute(ExprPtr object) {
  const int line = stream_.line();
  stream_.next();
  const int depth = depth_of(object);
  if (stream_.at(Kind::integer)) {
    OCTAVO_TRY(ExprPtr key, make(line, Literal{Value(stream_.current().integer)}));
    stream_.next();
    return make(line, GetItem{std::move(object), std::move(key)}, depth);
  }
  OCTAVO_TRY(std::string name, stream_.expect_name());
  return make(line, GetAttribute{std::move(object), std::move(name)}, depth);
}

Result<ExprPtr> ExpressionParser::subscript(ExprPtr object) {
  const int line = stream_.line();
  stream_.next();
  ExprPtr key;
  if (!stream_.at_symbol(":")) {
    OCTAVO_TRY(key, expression());
  }
  if (stream_.at_symbol(":")) return slice(std::move(object), std::move(key), line);
  if (stream_.at_symbol(",")) return stream_.unsupported("several subscripts in one '[]'");
  OCTAVO_CHECK_OK(stream_.expect_symbol("]"));
  const int depth = deepest(object, key);
  return make(line, GetItem{std::move(object), std::move(key)}, depth);
}

Result<ExprPtr> ExpressionParser::slice(ExprPtr object, ExprPtr start, int line) {
  GetSlice slice{std::move(object), std::move(start), nullptr, nullptr};
  for (ExprPtr* bound : {&slice.stop, &slice.step}) {
    if (!stream_.skip_symbol(":") || stream_.at_symbol(":") || stream_.at_symbol("]")) continue;
    OCTAVO_TRY(*bound, expression());
  }
  if (stream_.at_symbol(",")) return stream_.unsupported("several subscripts in one '[]'");
  OCTAVO_CHECK_OK(stream_.expect_symbol("]"));
  const int depth = deepest(slice.object, slice.start, slice.stop, slice.step);
  return make(line, std::move(slice), depth);
}

Result<ExprPtr> ExpressionParser::call(ExprPtr callee) {
  const int line = stream_.line();
  OCTAVO_TRY(CallArguments given, arguments());
  const int depth = std::max(depth_of(callee), deepest_of(given));
  return make(line, CallExpr{std::move(callee), std::move(given)}, depth);
}

Result<CallArguments> ExpressionParser::arguments() {
  OCTAVO_CHECK_OK(stream_.expect_symbol("("));
  CallArguments arguments;
  while (!stream_.at_symbol(")")) {
    OCTAVO_CHECK_OK(argument(arguments));
    if (!stream_.skip_symbol(",")) break;
  }
  OCTAVO_CHECK_OK(stream_.expect_symbol(")"));
  return arguments;
}

Result<void> ExpressionParser::argument(CallArguments& arguments) {
  if (stream_.at_symbol("*") || stream_.at_symbol("**")) return unpacked_argument(arguments);
  if (arguments.positional.size() + arguments.named.size() >= kMaxArguments)
    return stream_.exceeded(fmt::format("a call with more than {} arguments", kMaxArguments));
  const bool named =
      stream_.at(Kind::name) && stream_.look().kind == Kind::symbol && stream_.look().text == "=";
  if (arguments.more_named) return stream_.error("an argument after '**'");
  if (!named) {
    if (arguments.more_positional || !arguments.named.empty())
      return stream_.error("a positional argument after a named one");
    OCTAVO_TRY(ExprPtr value, expression());
    arguments.positional.push_back(std::move(value));
    return {};
  }
  OCTAVO_TRY(std::string name, stream_.expect_name());
  stream_.next();
  for (const auto& [other, value] : arguments.named)
    if (other == name) return stream_.error(fmt::format("the argument '{}' is given twice", name));
  OCTAVO_TRY(ExprPtr value, expression());
  arguments.named.emplace_back(std::move(name), std::move(value));
  return {};
}

// *expr or **expr, each once.
Result<void> ExpressionParser::unpacked_argument(CallArguments& arguments) {
  ExprPtr& place = stream_.at_symbol("*") ? arguments.more_positional : arguments.more_named;
  if (place || arguments.more_named) return stream_.error("a misplaced '*' or '**'");
  stream_.next();
  OCTAVO_TRY(place, expression());
  return {};
}

Result<ExprPtr> ExpressionParser::filters_and_tests(ExprPtr expr) {
  while (true) {
    if (stream_.skip_symbol("|")) {
      OCTAVO_TRY(expr, filter(std::move(expr)));
    } else if (stream_.skip_name("is")) {
      OCTAVO_TRY(expr, test(std::move(expr)));
    } else if (stream_.at_symbol("(")) {
      OCTAVO_TRY(expr, call(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> ExpressionParser::filters(ExprPtr input, bool first_without_pipe) {
  if (first_without_pipe) {
    OCTAVO_TRY(input, filter(std::move(input)));
  }
  while (stream_.skip_symbol("|")) {
    OCTAVO_TRY(input, filter(std::move(input)));
  }
  return input;
}

Result<ExprPtr> ExpressionParser::filter(ExprPtr input) {
  const int line = stream_.line();
  if (!stream_.at(Kind::name)) return stream_.unexpected("a filter's name");
  const std::string name(stream_.current().text.substr(0, 80));
  const Function* function = find_filter(stream_.current().text);
  if (!function) note_unknown("filter", name);
  stream_.next();
  CallArguments given;
  if (stream_.at_symbol("(")) {
    OCTAVO_TRY(given, arguments());
  }
  const int depth = std::max(depth_of(input), deepest_of(given));
  return make(line, FilterExpr{std::move(input), function, std::move(given), name}, depth);
}

Result<ExprPtr> ExpressionParser::test(ExprPtr input) {
  const int line = stream_.line();
  const bool negated = stream_.skip_name("not");
  if (!stream_.at(Kind::name)) return stream_.unexpected("a test's name");
  const std::string name(stream_.current().text.substr(0, 80));
  const Function* function = find_test(stream_.current().text);
  if (!function) note_unknown("test", name);
  stream_.next();
  CallArguments given;
  if (stream_.at_symbol("(")) {
    OCTAVO_TRY(given, arguments());
  } else if (begins_bare_argument(stream_)) {
    if (stream_.at_name("is")) return stream_.error("tests cannot be chained with 'is'");
    OCTAVO_TRY(ExprPtr bare, primary());
    OCTAVO_TRY(bare, postfix(std::move(bare)));
    given.positional.push_back(std::move(bare));
  }
  const int depth = std::max(depth_of(input), deepest_of(given));
  OCTAVO_TRY(ExprPtr result,
             make(line, TestExpr{std::move(input), function, std::move(given), name}, depth));
  if (!negated) return result;
  return make(line, Unary{UnaryOp::logical_not, std::move(result)}, depth + 1);
}

}  // namespace octavo::jinja
