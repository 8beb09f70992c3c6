#include "text/jinja_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "text/jinja_expression_parser.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

using Kind = Token::Kind;
using EndTags = std::initializer_list<std::string_view>;

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view name)
      : stream_(std::move(tokens), name), expressions_(stream_) {}

  Result<ParsedTemplate> run() {
    const ExpressionParser::Unknown unknown(expressions_);
    OCTAVO_TRY(Body body, statements({}));
    if (!stream_.at(Kind::end)) return unexpected_tag();
    OCTAVO_CHECK_OK(unknown.refuse());
    return ParsedTemplate{std::move(body), std::move(expressions_.variables)};
  }

 private:
  using Handler = Result<Statement> (Parser::*)();
  struct Tag {
    std::string_view name;
    Handler handler;  // null: Jinja knows the tag, this interpreter does not
  };
  static const std::array<Tag, 17> kTags;

  // Statements up to a tag named in `ends`, of which the name is current then, or to a tag nobody
  // knows.
  Result<Body> statements(EndTags ends) {
    const ExpressionParser::Nesting nesting(expressions_);
    OCTAVO_CHECK_OK(expressions_.check_nesting());
    Body body;
    while (!stream_.at(Kind::end)) {
      if (stream_.at(Kind::block_begin)) {
        stream_.next();
        if (is_end(ends)) return body;
        OCTAVO_TRY(Statement statement, tag());
        OCTAVO_CHECK_OK(expect(Kind::block_end, "'%}'"));
        body.push_back(std::move(statement));
      } else {
        OCTAVO_TRY(Statement output, data_or_print());
        body.push_back(std::move(output));
      }
    }
    return body;
  }

  bool is_end(EndTags ends) const {
    return std::any_of(ends.begin(), ends.end(), [&](auto name) { return stream_.at_name(name); });
  }

  // The body of a tag: after its '%}', up to one of `ends`.
  Result<Body> block(EndTags ends, int begin_line) {
    stream_.skip_symbol(":");
    OCTAVO_CHECK_OK(expect(Kind::block_end, "'%}'"));
    OCTAVO_TRY(Body body, statements(ends));
    if (stream_.at(Kind::end))
      return stream_.error(fmt::format("the block of line {} is not closed by '{}'", begin_line,
                                       *std::prev(ends.end())));
    return body;
  }

  // The body of a tag that makes a scope of its own.
  Result<Body> scoped_block(EndTags ends, int begin_line) {
    const ExpressionParser::Unknown unknown(expressions_);
    OCTAVO_TRY(Body body, block(ends, begin_line));
    OCTAVO_CHECK_OK(unknown.refuse());
    return body;
  }

  // A body in which no loop of the outside can be left.
  Result<Body> separate_block(EndTags ends, int begin_line) {
    const int loops = std::exchange(loops_, 0);
    auto body = scoped_block(ends, begin_line);
    loops_ = loops;
    if (body) stream_.next();
    return body;
  }

  Result<void> expect(Kind kind, std::string_view what) {
    if (!stream_.at(kind)) return stream_.unexpected(what);
    stream_.next();
    return {};
  }

  Result<Statement> data_or_print() {
    const int line = stream_.line();
    if (stream_.at(Kind::data)) {
      Literal text{std::make_shared<const Text>(stream_.current().text, true)};
      stream_.next();
      return Statement{line, Output{std::make_unique<Expr>(Expr{line, 1, std::move(text)})}};
    }
    OCTAVO_CHECK_OK(expect(Kind::print_begin, "text or a tag"));
    OCTAVO_TRY(ExprPtr expression, expressions_.tuple());
    OCTAVO_CHECK_OK(expect(Kind::print_end, "'}}'"));
    return Statement{line, Output{std::move(expression)}};
  }

  tl::unexpected<Error> unexpected_tag() const {
    const std::string name = stream_.current().text.substr(0, 80);
    constexpr std::string_view kInner[] = {"else", "elif"};
    if (name.starts_with("end") ||
        std::find(std::begin(kInner), std::end(kInner), name) != std::end(kInner))
      return stream_.error(fmt::format("tag '{}' closes nothing that is open", name));
    return stream_.unsupported(fmt::format("unknown tag '{}'", name));
  }

  Result<Statement> tag() {
    if (!stream_.at(Kind::name)) return stream_.unexpected("a tag's name");
    for (const Tag& known : kTags) {
      if (!stream_.at_name(known.name)) continue;
      if (!known.handler)
        return stream_.unsupported(fmt::format("tag '{}' is not supported", known.name));
      return (this->*known.handler)();
    }
    return unexpected_tag();
  }

  Result<Statement> parse_if() {
    const int line = stream_.line();
    ExpressionParser::Unknown unknown(expressions_);
    If result;
    while (stream_.at_name("if") || stream_.at_name("elif")) {
      stream_.next();
      OCTAVO_TRY(ExprPtr test, expressions_.tuple(false));
      OCTAVO_TRY(Body body, block({"elif", "else", "endif"}, line));
      result.branches.emplace_back(std::move(test), std::move(body));
    }
    if (stream_.skip_name("else")) {
      OCTAVO_TRY(result.otherwise, block({"endif"}, line));
    }
    stream_.next();
    unknown.forgive();
    return Statement{line, std::move(result)};
  }

  Result<Statement> parse_for() {
    const int line = stream_.line();
    stream_.next();
    For loop;
    OCTAVO_TRY(loop.target, expressions_.target(false));
    if (!stream_.skip_name("in")) return stream_.unexpected("'in'");
    OCTAVO_TRY(loop.items, expressions_.tuple(false, "recursive"));
    const ExpressionParser::Unknown unknown(expressions_);
    if (stream_.skip_name("if")) {
      OCTAVO_TRY(loop.filter, expressions_.expression());
    }
    loop.recursive = stream_.skip_name("recursive");
    ++loops_;
    OCTAVO_TRY(loop.body, block({"else", "endfor"}, line));
    --loops_;
    if (stream_.skip_name("else")) {
      OCTAVO_TRY(loop.otherwise, block({"endfor"}, line));
    }
    OCTAVO_CHECK_OK(unknown.refuse());
    stream_.next();
    return Statement{line, std::move(loop)};
  }

  Result<Statement> parse_set() {
    const int line = stream_.line();
    stream_.next();
    OCTAVO_TRY(Target target, expressions_.target(true));
    if (stream_.skip_symbol("=")) {
      OCTAVO_TRY(ExprPtr value, expressions_.tuple());
      return Statement{line, Set{std::move(target), std::move(value)}};
    }
    SetBlock set{std::move(target), nullptr, {}};
    const ExpressionParser::Unknown unknown(expressions_);
    OCTAVO_TRY(set.filter, expressions_.filters(nullptr, false));
    OCTAVO_TRY(set.body, block({"endset"}, line));
    OCTAVO_CHECK_OK(unknown.refuse());
    stream_.next();
    return Statement{line, std::move(set)};
  }

  Result<void> signature(MacroDefinition& macro) {
    OCTAVO_CHECK_OK(stream_.expect_symbol("("));
    while (!stream_.at_symbol(")")) {
      if (macro.parameters.size() >= kMaxArguments)
        return stream_.exceeded(fmt::format("more than {} parameters", kMaxArguments));
      MacroDefinition::Parameter parameter;
      OCTAVO_TRY(parameter.name, stream_.expect_name());
      if (stream_.skip_symbol("=")) {
        OCTAVO_TRY(parameter.otherwise, expressions_.expression());
      } else if (!macro.parameters.empty() && macro.parameters.back().otherwise) {
        return stream_.error("a parameter without a default follows one with a default");
      }
      macro.parameters.push_back(std::move(parameter));
      if (!stream_.at_symbol(")")) OCTAVO_CHECK_OK(stream_.expect_symbol(","));
    }
    stream_.next();
    return {};
  }

  Result<void> macro_body(MacroDefinition& macro, std::string_view end, int line) {
    expressions_.macros.push_back(&macro);
    auto body = separate_block({end}, line);
    expressions_.macros.pop_back();
    OCTAVO_TRY(macro.body, std::move(body));
    return {};
  }

  Result<Statement> parse_macro() {
    const int line = stream_.line();
    stream_.next();
    MacroDefinition macro;
    OCTAVO_TRY(macro.name, stream_.expect_name());
    OCTAVO_CHECK_OK(signature(macro));
    OCTAVO_CHECK_OK(macro_body(macro, "endmacro", line));
    return Statement{line, std::move(macro)};
  }

  Result<Statement> parse_call() {
    const int line = stream_.line();
    stream_.next();
    CallBlock block;
    block.caller.name = "caller";
    if (stream_.at_symbol("(")) OCTAVO_CHECK_OK(signature(block.caller));
    OCTAVO_TRY(block.call, expressions_.expression());
    if (!std::holds_alternative<CallExpr>(block.call->node)) return stream_.unexpected("a call");
    OCTAVO_CHECK_OK(macro_body(block.caller, "endcall", line));
    return Statement{line, std::move(block)};
  }

  Result<Statement> parse_filter() {
    const int line = stream_.line();
    stream_.next();
    FilterBlock filter;
    const ExpressionParser::Unknown unknown(expressions_);
    OCTAVO_TRY(filter.filter, expressions_.filters(nullptr, true));
    OCTAVO_TRY(filter.body, block({"endfilter"}, line));
    OCTAVO_CHECK_OK(unknown.refuse());
    stream_.next();
    return Statement{line, std::move(filter)};
  }

  Result<Statement> parse_with() {
    const int line = stream_.line();
    stream_.next();
    With with;
    while (!stream_.at(Kind::block_end)) {
      if (!with.values.empty()) OCTAVO_CHECK_OK(stream_.expect_symbol(","));
      OCTAVO_TRY(Target target, expressions_.target(false));
      OCTAVO_CHECK_OK(stream_.expect_symbol("="));
      OCTAVO_TRY(ExprPtr value, expressions_.expression());
      with.values.emplace_back(std::move(target), std::move(value));
    }
    OCTAVO_TRY(with.body, scoped_block({"endwith"}, line));
    stream_.next();
    return Statement{line, std::move(with)};
  }

  Result<Statement> parse_generation() {
    const int line = stream_.line();
    stream_.next();
    OCTAVO_TRY(Body body, separate_block({"endgeneration"}, line));
    return Statement{line, ScopedBlock{std::move(body)}};
  }

  Result<Statement> parse_print() {
    const int line = stream_.line();
    stream_.next();
    OCTAVO_TRY(ExprPtr expression, expressions_.expression());
    return Statement{line, Output{std::move(expression)}};
  }

  template <class Node>
  Result<Statement> leave_loop() {
    const int line = stream_.line();
    if (loops_ == 0)
      return stream_.error(fmt::format("'{}' outside of a loop", stream_.current().text));
    stream_.next();
    return Statement{line, Node{}};
  }

  TokenStream stream_;
  ExpressionParser expressions_;
  int loops_ = 0;  // that a break here could leave
};

const std::array<Parser::Tag, 17> Parser::kTags = {{
    {"if", &Parser::parse_if},
    {"for", &Parser::parse_for},
    {"set", &Parser::parse_set},
    {"macro", &Parser::parse_macro},
    {"call", &Parser::parse_call},
    {"filter", &Parser::parse_filter},
    {"with", &Parser::parse_with},
    {"generation", &Parser::parse_generation},
    {"break", &Parser::leave_loop<Break>},
    {"continue", &Parser::leave_loop<Continue>},
    {"autoescape", nullptr},
    {"block", nullptr},
    {"extends", nullptr},
    {"from", nullptr},
    {"import", nullptr},
    {"include", nullptr},
    {"print", &Parser::parse_print},
}};

}  // namespace

Result<ParsedTemplate> parse_template(std::string_view source, std::string_view name) {
  if (source.size() > kMaxSourceBytes)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{}: a template of {} bytes; the limit is {}", name, source.size(),
                            kMaxSourceBytes));
  if (const auto at = find_invalid_utf8(source))
    return located(
        ErrorCode::template_error, name, "bytes that are not UTF-8",
        1 + static_cast<int>(std::count(source.begin(),
                                        source.begin() + static_cast<std::ptrdiff_t>(*at), '\n')));
  OCTAVO_TRY(std::vector<Token> tokens, tokenize(source, name));
  return Parser(std::move(tokens), name).run();
}

}  // namespace octavo::jinja
