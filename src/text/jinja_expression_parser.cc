#include "text/jinja_expression_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "text/jinja_expression_depth.h"

namespace octavo::jinja {
namespace {

using Kind = Token::Kind;

std::optional<CompareOp> comparison_symbol(const Token& token) {
  constexpr std::pair<std::string_view, CompareOp> kTable[] = {
      {"==", CompareOp::equal},      {"!=", CompareOp::not_equal}, {"<", CompareOp::less},
      {"<=", CompareOp::less_equal}, {">", CompareOp::greater},    {">=", CompareOp::greater_equal},
  };
  if (token.kind != Kind::symbol) return std::nullopt;
  for (const auto& [symbol, op] : kTable)
    if (token.text == symbol) return op;
  return std::nullopt;
}

std::optional<BinaryOp> product_symbol(const TokenStream& stream) {
  if (stream.at_symbol("*")) return BinaryOp::multiply;
  if (stream.at_symbol("/")) return BinaryOp::divide;
  if (stream.at_symbol("//")) return BinaryOp::floor_divide;
  if (stream.at_symbol("%")) return BinaryOp::modulo;
  return std::nullopt;
}

bool ends_tuple(const TokenStream& stream, std::string_view stop_word) {
  return stream.at(Kind::print_end) || stream.at(Kind::block_end) || stream.at_symbol(")") ||
         (!stop_word.empty() && stream.at_name(stop_word));
}

bool is_constant_name(std::string_view name) {
  constexpr std::string_view kNames[] = {"true", "True", "false", "False", "none", "None"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

Result<void> ExpressionParser::check_nesting() const {
  if (nesting_ > kMaxParseDepth)
    return stream_.exceeded(
        fmt::format("more than {} brackets or blocks inside each other", kMaxParseDepth));
  return {};
}

Result<ExprPtr> ExpressionParser::expression(bool with_conditional) {
  const Nesting nesting(*this);
  OCTAVO_CHECK_OK(check_nesting());
  return with_conditional ? conditional() : logical_or();
}

Result<ExprPtr> ExpressionParser::tuple(bool with_conditional, std::string_view stop_word) {
  const int line = stream_.line();
  std::vector<ExprPtr> items;
  bool has_comma = false;
  while (!ends_tuple(stream_, stop_word)) {
    OCTAVO_TRY(ExprPtr item, expression(with_conditional));
    items.push_back(std::move(item));
    if (!stream_.skip_symbol(",")) break;
    has_comma = true;
  }
  if (!has_comma && items.empty()) return stream_.unexpected("an expression");
  if (!has_comma) return std::move(items[0]);
  const int depth = deepest_of(items);
  return make(line, ListDisplay{Sequence::Kind::tuple, std::move(items)}, depth);
}

Result<Target> ExpressionParser::single_target(bool with_field) {
  const Nesting nesting(*this);
  OCTAVO_CHECK_OK(check_nesting());
  if (stream_.skip_symbol("(")) {
    OCTAVO_TRY(Target inner, target(with_field));
    OCTAVO_CHECK_OK(stream_.expect_symbol(")"));
    return inner;
  }
  Target single;
  single.line = stream_.line();
  if (stream_.at(Kind::name) && is_constant_name(stream_.current().text))
    return stream_.error(fmt::format("cannot assign to '{}'", stream_.current().text));
  OCTAVO_TRY(single.name, stream_.expect_name());
  if (with_field && stream_.skip_symbol(".")) {
    OCTAVO_TRY(single.field, stream_.expect_name());
  }
  return single;
}

Result<Target> ExpressionParser::target(bool with_field) {
  OCTAVO_TRY(Target first, single_target(with_field));
  if (!stream_.at_symbol(",")) return first;
  Target all;
  all.line = first.line;
  all.items.push_back(std::move(first));
  while (stream_.skip_symbol(",") && (stream_.at(Kind::name) || stream_.at_symbol("(")) &&
         !stream_.at_name("in")) {
    OCTAVO_TRY(Target item, single_target(with_field));
    all.items.push_back(std::move(item));
  }
  return all;
}

void ExpressionParser::note_unknown(std::string_view kind, std::string_view name) {
  unknown_.push_back(stream_.unsupported(fmt::format("unknown {} '{}'", kind, name)).value());
}

Result<void> ExpressionParser::Unknown::refuse() const {
  if (std::ssize(errors_) == before_) return {};
  return tl::make_unexpected(errors_[static_cast<size_t>(before_)]);
}

Result<ExprPtr> ExpressionParser::conditional() {
  int line = stream_.line();
  Unknown unknown(*this);
  OCTAVO_TRY(ExprPtr value, logical_or());
  while (stream_.skip_name("if")) {
    OCTAVO_TRY(ExprPtr test, logical_or());
    ExprPtr otherwise;
    if (stream_.skip_name("else")) {
      OCTAVO_TRY(otherwise, expression());
    }
    unknown.forgive();
    const int depth = deepest(test, value, otherwise);
    OCTAVO_TRY(
        value,
        make(line, Conditional{std::move(test), std::move(value), std::move(otherwise)}, depth));
    line = stream_.line();
  }
  return value;
}

Result<ExprPtr> ExpressionParser::logical_or() {
  OCTAVO_TRY(ExprPtr left, logical_and());
  while (stream_.skip_name("or")) {
    const int line = stream_.line();
    OCTAVO_TRY(ExprPtr right, logical_and());
    const int depth = deepest(left, right);
    OCTAVO_TRY(left, make(line, Logical{false, std::move(left), std::move(right)}, depth));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::logical_and() {
  OCTAVO_TRY(ExprPtr left, logical_not());
  while (stream_.skip_name("and")) {
    const int line = stream_.line();
    OCTAVO_TRY(ExprPtr right, logical_not());
    const int depth = deepest(left, right);
    OCTAVO_TRY(left, make(line, Logical{true, std::move(left), std::move(right)}, depth));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::logical_not() {
  const int line = stream_.line();
  if (!stream_.skip_name("not")) return comparison();
  const Nesting nesting(*this);
  OCTAVO_CHECK_OK(check_nesting());
  OCTAVO_TRY(ExprPtr operand, logical_not());
  const int depth = depth_of(operand);
  return make(line, Unary{UnaryOp::logical_not, std::move(operand)}, depth);
}

Result<ExprPtr> ExpressionParser::comparison() {
  const int line = stream_.line();
  OCTAVO_TRY(ExprPtr first, sum());
  Comparison chain{std::move(first), {}};
  int depth = depth_of(chain.first);
  while (true) {
    std::optional<CompareOp> op = comparison_symbol(stream_.current());
    if (stream_.at_name("in")) op = CompareOp::in;
    if (stream_.at_name("not") && stream_.look().kind == Kind::name &&
        stream_.look().text == "in") {
      stream_.next();
      op = CompareOp::not_in;
    }
    if (!op) break;
    stream_.next();
    OCTAVO_TRY(ExprPtr operand, sum());
    depth = std::max(depth, depth_of(operand));
    chain.rest.emplace_back(*op, std::move(operand));
  }
  if (chain.rest.empty()) return std::move(chain.first);
  return make(line, std::move(chain), depth);
}

Result<ExprPtr> ExpressionParser::sum() {
  OCTAVO_TRY(ExprPtr left, concatenation());
  while (stream_.at_symbol("+") || stream_.at_symbol("-")) {
    const int line = stream_.line();
    const BinaryOp op = stream_.at_symbol("+") ? BinaryOp::add : BinaryOp::subtract;
    stream_.next();
    OCTAVO_TRY(ExprPtr right, concatenation());
    const int depth = deepest(left, right);
    OCTAVO_TRY(left, make(line, Binary{op, std::move(left), std::move(right)}, depth));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::concatenation() {
  const int line = stream_.line();
  OCTAVO_TRY(ExprPtr first, product());
  if (!stream_.at_symbol("~")) return first;
  Concat concat;
  concat.parts.push_back(std::move(first));
  while (stream_.skip_symbol("~")) {
    OCTAVO_TRY(ExprPtr part, product());
    concat.parts.push_back(std::move(part));
  }
  const int depth = deepest_of(concat.parts);
  return make(line, std::move(concat), depth);
}

Result<ExprPtr> ExpressionParser::product() {
  OCTAVO_TRY(ExprPtr left, power());
  while (const auto op = product_symbol(stream_)) {
    const int line = stream_.line();
    stream_.next();
    OCTAVO_TRY(ExprPtr right, power());
    const int depth = deepest(left, right);
    OCTAVO_TRY(left, make(line, Binary{*op, std::move(left), std::move(right)}, depth));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::power() {
  OCTAVO_TRY(ExprPtr left, unary());
  while (stream_.at_symbol("**")) {
    const int line = stream_.line();
    stream_.next();
    OCTAVO_TRY(ExprPtr right, unary());
    const int depth = deepest(left, right);
    OCTAVO_TRY(left, make(line, Binary{BinaryOp::power, std::move(left), std::move(right)}, depth));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::unary(bool with_filters) {
  const int line = stream_.line();
  ExprPtr expr;
  if (stream_.at_symbol("-") || stream_.at_symbol("+")) {
    const Nesting nesting(*this);
    OCTAVO_CHECK_OK(check_nesting());
    const UnaryOp op = stream_.at_symbol("-") ? UnaryOp::negate : UnaryOp::plus;
    stream_.next();
    OCTAVO_TRY(ExprPtr operand, unary(false));
    const int depth = depth_of(operand);
    OCTAVO_TRY(expr, make(line, Unary{op, std::move(operand)}, depth));
  } else {
    OCTAVO_TRY(expr, primary());
  }
  OCTAVO_TRY(expr, postfix(std::move(expr)));
  return with_filters ? filters_and_tests(std::move(expr)) : std::move(expr);
}

Result<ExprPtr> ExpressionParser::primary() {
  const Token& token = stream_.current();
  const int line = token.line;
  if (token.kind == Kind::name) return name();
  if (token.kind == Kind::string) return string();
  if (token.kind == Kind::integer || token.kind == Kind::number) {
    Literal literal{token.kind == Kind::integer ? Value(token.integer) : Value(token.number)};
    stream_.next();
    return make(line, std::move(literal));
  }
  if (stream_.at_symbol("[")) return list();
  if (stream_.at_symbol("{")) return dict();
  if (!stream_.skip_symbol("(")) return stream_.unexpected("an expression");
  if (stream_.skip_symbol(")")) return make(line, ListDisplay{Sequence::Kind::tuple, {}});
  OCTAVO_TRY(ExprPtr inner, tuple());
  OCTAVO_CHECK_OK(stream_.expect_symbol(")"));
  return inner;
}

Result<ExprPtr> ExpressionParser::name() {
  const int line = stream_.line();
  OCTAVO_TRY(std::string name, stream_.expect_name());
  if (name == "true" || name == "True") return make(line, Literal{Value(true)});
  if (name == "false" || name == "False") return make(line, Literal{Value(false)});
  if (name == "none" || name == "None") return make(line, Literal{Value(None{})});
  for (MacroDefinition* macro : macros) {
    macro->uses_varargs |= name == "varargs";
    macro->uses_kwargs |= name == "kwargs";
    macro->uses_caller |= name == "caller";
  }
  variables.insert(name);
  return make(line, Name{std::move(name)});
}

Result<ExprPtr> ExpressionParser::string() {
  const int line = stream_.line();
  std::string text;
  for (; stream_.at(Kind::string); stream_.next()) text += stream_.current().text;
  return make(line, Literal{std::make_shared<const Text>(text, true)});
}

Result<ExprPtr> ExpressionParser::list() {
  const int line = stream_.line();
  stream_.next();
  ListDisplay list{Sequence::Kind::list, {}};
  while (!stream_.at_symbol("]")) {
    OCTAVO_TRY(ExprPtr item, expression());
    list.items.push_back(std::move(item));
    if (!stream_.skip_symbol(",")) break;
  }
  OCTAVO_CHECK_OK(stream_.expect_symbol("]"));
  const int depth = deepest_of(list.items);
  return make(line, std::move(list), depth);
}

Result<ExprPtr> ExpressionParser::dict() {
  const int line = stream_.line();
  stream_.next();
  DictDisplay dict;
  int depth = 0;
  while (!stream_.at_symbol("}")) {
    OCTAVO_TRY(ExprPtr key, expression());
    OCTAVO_CHECK_OK(stream_.expect_symbol(":"));
    OCTAVO_TRY(ExprPtr value, expression());
    depth = std::max(depth, deepest(key, value));
    dict.entries.emplace_back(std::move(key), std::move(value));
    if (!stream_.skip_symbol(",")) break;
  }
  OCTAVO_CHECK_OK(stream_.expect_symbol("}"));
  return make(line, std::move(dict), depth);
}

}  // namespace octavo::jinja
