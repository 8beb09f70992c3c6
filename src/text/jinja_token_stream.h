// The parsers' view of the tokens: the current one, the next, and errors that name the line.
#pragma once

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja_context.h"
#include "text/jinja_lexer.h"

namespace octavo::jinja {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, std::string_view name)
      : tokens_(std::move(tokens)), name_(name) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  int line() const { return current().line; }
  void next() { at_ = std::min(at_ + 1, tokens_.size() - 1); }

  bool at(Token::Kind kind) const { return current().kind == kind; }
  bool at_symbol(std::string_view text) const {
    return at(Token::Kind::symbol) && current().text == text;
  }
  bool at_name(std::string_view text) const {
    return at(Token::Kind::name) && current().text == text;
  }
  bool skip_symbol(std::string_view text) { return at_symbol(text) && (next(), true); }
  bool skip_name(std::string_view text) { return at_name(text) && (next(), true); }

  Result<void> expect_symbol(std::string_view text) {
    if (!skip_symbol(text)) return unexpected(fmt::format("'{}'", text));
    return {};
  }
  Result<std::string> expect_name() {
    if (!at(Token::Kind::name)) return unexpected("a name");
    std::string text = current().text;
    next();
    return text;
  }

  tl::unexpected<Error> error(std::string_view message) const {
    return located(ErrorCode::template_error, name_, message, line());
  }
  tl::unexpected<Error> unsupported(std::string_view message) const {
    return located(ErrorCode::unsupported, name_, message, line());
  }
  tl::unexpected<Error> exceeded(std::string_view message) const {
    return located(ErrorCode::resource_exhausted, name_, message, line());
  }
  tl::unexpected<Error> unexpected(std::string_view wanted) const {
    return error(fmt::format("expected {}, found {}", wanted, describe()));
  }

 private:
  std::string describe() const {
    switch (current().kind) {
      case Token::Kind::end:
        return "the end of the template";
      case Token::Kind::block_end:
        return "'%}'";
      case Token::Kind::print_end:
        return "'}}'";
      case Token::Kind::data:
        return "text";
      default:
        return fmt::format("'{}'", current().text.substr(0, 80));
    }
  }

  std::vector<Token> tokens_;  // the last is of kind end
  std::string_view name_;
  size_t at_ = 0;
};

}  // namespace octavo::jinja
