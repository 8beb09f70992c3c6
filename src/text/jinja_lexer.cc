#include "text/jinja_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "text/jinja_context.h"
#include "text/jinja_string_literal.h"
#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

using Kind = Token::Kind;

// Longest first, so that the first that fits is the right one.
constexpr std::array<std::string_view, 26> kSymbols = {
    "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_decimal(char c) { return c >= '0' && c <= '9'; }

// Lines end in \n, and one at the very end of the template does not count.
std::string normalize(std::string_view source) {
  std::string result;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      result += source[i];
      continue;
    }
    result += '\n';
    if (source.substr(i, 2) == "\r\n") ++i;
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

class Lexer {
 public:
  Lexer(std::string_view source, std::string_view name) : source_(source), name_(name) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) OCTAVO_CHECK_OK(data_and_tag());
    push(Kind::end, "");
    return std::move(tokens_);
  }

 private:
  std::string_view left() const { return source_.substr(at_); }
  bool next_is(std::string_view text) const { return left().starts_with(text); }

  tl::unexpected<Error> error(std::string_view message) const {
    return located(ErrorCode::template_error, name_, message, line_);
  }

  void push(Kind kind, std::string_view text) {
    tokens_.push_back({kind, line_, std::string(text)});
  }

  void skip(size_t bytes) {
    line_ += static_cast<int>(
        std::count(left().begin(), left().begin() + static_cast<std::ptrdiff_t>(bytes), '\n'));
    if (bytes > 0) line_start_ = source_[at_ + bytes - 1] == '\n';
    at_ += bytes;
  }

  void skip_spaces() { skip(count_spaces(left())); }

  static size_t count_spaces(std::string_view text) {
    size_t at = 0;
    while (at < text.size() && is_space(decode_char(text, at))) at += char_bytes(text[at]);
    return at;
  }

  Result<void> data_and_tag() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = std::min(source_.find('{', tag), source_.size());
      if (tag + 1 >= source_.size()) {
        push_data(left());
        skip(left().size());
        return {};
      }
      if (std::string_view("{%#").find(source_[tag + 1]) != std::string_view::npos) break;
    }
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    const char type = source_[tag + 1];
    const std::string_view text = left().substr(0, tag - at_);
    push_data(trim_before(text, type == '{' && sign != '-' ? '+' : sign));
    skip(text.size());
    if (type == '#') return comment();
    if (const size_t raw = raw_begin()) return raw_block(raw);
    push(type == '{' ? Kind::print_begin : Kind::block_begin, "");
    skip(sign == '-' || sign == '+' ? 3 : 2);
    return inside(type == '{');
  }

  void push_data(std::string_view text) {
    if (!text.empty()) push(Kind::data, text);
  }

  // The text before a tag: '-' takes all white space off its end, '+' nothing, otherwise
  // (lstrip_blocks) what stands before the tag on its line if that is only white space.
  std::string_view trim_before(std::string_view text, char sign) const {
    if (sign == '+') return text;
    if (sign == '-') {
      size_t end = text.size();
      while (end > 0 && is_space(decode_char(text, previous_char(text, end))))
        end = previous_char(text, end);
      return text.substr(0, end);
    }
    const size_t line_begin = text.rfind('\n') + 1;  // npos + 1 = 0
    const bool at_line_start = line_begin > 0 || line_start_;
    const std::string_view last = text.substr(line_begin);
    return at_line_start && count_spaces(last) == last.size() ? text.substr(0, line_begin) : text;
  }

  // The length of `CLOSE` with its sign and the white space it eats, at `text`; 0 if it is not
  // there.
  static size_t closing(std::string_view text, std::string_view close, bool trim_newline,
                        bool plus_allowed) {
    const bool minus = text.starts_with('-');
    const bool plus = plus_allowed && text.starts_with('+');
    const size_t sign = minus || plus ? 1 : 0;
    if (!text.substr(sign).starts_with(close)) return 0;
    const size_t end = sign + close.size();
    if (minus) return end + count_spaces(text.substr(end));
    return trim_newline && !plus && text.substr(end).starts_with('\n') ? end + 1 : end;
  }

  Result<void> comment() {
    const bool sign = left().size() > 2 && (left()[2] == '-' || left()[2] == '+');
    const size_t begin = at_ + (sign ? 3 : 2);
    size_t end = source_.find("#}", begin);
    if (end == std::string_view::npos) return error("a comment '{#' without '#}'");
    if (end > begin && (source_[end - 1] == '-' || source_[end - 1] == '+')) --end;
    skip(end - at_);
    skip(closing(left(), "#}", true, true));
    return {};
  }

  // The length of a {% raw %} tag here; 0 if it is something else.
  size_t raw_begin() const {
    std::string_view text = left();
    if (!text.starts_with("{%")) return 0;
    text.remove_prefix(text.size() > 2 && (text[2] == '-' || text[2] == '+') ? 3 : 2);
    text.remove_prefix(count_spaces(text));
    if (!text.starts_with("raw")) return 0;
    text.remove_prefix(3);
    text.remove_prefix(count_spaces(text));
    const size_t end = closing(text, "%}", false, false);
    return end == 0 ? 0 : left().size() - text.size() + end;
  }

  Result<void> raw_block(size_t begin_tag) {
    skip(begin_tag);
    for (size_t tag = at_; (tag = source_.find("{%", tag)) != std::string_view::npos; tag += 2) {
      std::string_view text = source_.substr(tag + 2);
      const char sign = text.empty() ? '\0' : text[0];
      if (sign == '-' || sign == '+') text.remove_prefix(1);
      text.remove_prefix(count_spaces(text));
      if (!text.starts_with("endraw")) continue;
      text.remove_prefix(6);
      text.remove_prefix(count_spaces(text));
      const size_t end = closing(text, "%}", true, true);
      if (end == 0) continue;
      push_data(trim_before(left().substr(0, tag - at_), sign));
      skip(source_.size() - text.size() + end - at_);
      return {};
    }
    return error("a 'raw' block without 'endraw'");
  }

  // Tokens up to the end of the tag. Inside brackets, '}}' and '%}' are brackets and operators.
  Result<void> inside(bool print) {
    const int begin_line = line_;
    brackets_.clear();
    while (true) {
      skip_spaces();
      if (at_ == source_.size())
        return located(ErrorCode::template_error, name_,
                       print ? "a '{{' without '}}'" : "a '{%' without '%}'", begin_line);
      const size_t end =
          brackets_.empty() ? closing(left(), print ? "}}" : "%}", !print, !print) : 0;
      if (end > 0) {
        push(print ? Kind::print_end : Kind::block_end, "");
        skip(end);
        return {};
      }
      OCTAVO_CHECK_OK(token());
    }
  }

  Result<void> token() {
    const char c = source_[at_];
    if (is_decimal(c)) return number();
    if (is_name_char(c)) return name();
    if (c == '"' || c == '\'') return string(c);
    for (const std::string_view symbol : kSymbols)
      if (next_is(symbol)) return this->symbol(symbol);
    return error(fmt::format("unexpected character '{}'", left().substr(0, char_bytes(c))));
  }

  Result<void> name() {
    size_t end = 0;
    while (end < left().size() && is_name_char(left()[end])) ++end;
    if (end < left().size() && static_cast<unsigned char>(left()[end]) >= 0x80 &&
        is_alpha(decode_char(left(), end)))
      return located(ErrorCode::unsupported, name_, "a name with letters outside ASCII", line_);
    push(Kind::name, left().substr(0, end));
    skip(end);
    return {};
  }

  Result<void> string(char quote) {
    size_t end = 1;
    while (end < left().size() && left()[end] != quote) end += left()[end] == '\\' ? 2 : 1;
    if (end >= left().size()) return error("a string that does not end");
    auto text = unescape(left().substr(1, end - 1));
    if (!text) return located(text.error().code, name_, text.error().message, line_);
    push(Kind::string, *text);
    skip(end + 1);
    return {};
  }

  Result<void> symbol(std::string_view text) {
    const char c = text[0];
    if (c == '(' || c == '[' || c == '{') brackets_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty() || brackets_.back() != c)
        return error(fmt::format("unexpected '{}'", c));
      brackets_.pop_back();
    }
    push(Kind::symbol, text);
    skip(text.size());
    return {};
  }

  // Digits with single underscores between them, from `at`; returns where they end.
  size_t digits(size_t at) const {
    const auto digit = [&](size_t i) { return i < source_.size() && is_decimal(source_[i]); };
    while (digit(at) || (at < source_.size() && source_[at] == '_' && digit(at + 1))) ++at;
    return at;
  }

  Result<void> number() {
    if (source_[at_] == '0' && at_ + 1 < source_.size() &&
        std::string_view("bBoOxX").find(source_[at_ + 1]) != std::string_view::npos)
      return prefixed_integer();
    const size_t whole = digits(at_);
    size_t end = whole;
    const auto digit = [&](size_t i) { return i < source_.size() && is_decimal(source_[i]); };
    const bool after_dot = source_[at_ - 1] == '.';  // in `list.0.1` each number is an index
    if (!after_dot && end < source_.size() && source_[end] == '.' && digit(end + 1))
      end = digits(end + 1);
    if (!after_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const size_t sign =
          end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-') ? 1 : 0;
      if (digit(end + 1 + sign)) end = digits(end + 1 + sign);
    }
    std::string plain(source_.substr(at_, end - at_));
    std::erase(plain, '_');
    Token token{end == whole ? Kind::integer : Kind::number, line_, plain};
    if (token.kind == Kind::integer && plain.size() > 1 && plain[0] == '0' &&
        plain.find_first_not_of('0') != std::string::npos)
      return error("a number that begins with 0");
    const char* stop = plain.data() + plain.size();
    const auto code = token.kind == Kind::integer
                          ? std::from_chars(plain.data(), stop, token.integer).ec
                          : std::from_chars(plain.data(), stop, token.number).ec;
    if (code != std::errc())
      return error(fmt::format("the number {} is out of range", plain.substr(0, 40)));
    tokens_.push_back(std::move(token));
    skip(end - at_);
    return {};
  }

  Result<void> prefixed_integer() {
    const char letter = source_[at_ + 1];
    const int base = letter == 'x' || letter == 'X' ? 16 : letter == 'o' || letter == 'O' ? 8 : 2;
    size_t end = at_ + 2;
    while (end < source_.size() && is_name_char(source_[end])) ++end;
    std::string plain(source_.substr(at_ + 2, end - at_ - 2));
    std::erase(plain, '_');
    Token token{Kind::integer, line_, plain};
    const char* stop = plain.data() + plain.size();
    const auto [parsed, code] = std::from_chars(plain.data(), stop, token.integer, base);
    if (code != std::errc() || parsed != stop) return error("a malformed number");
    tokens_.push_back(std::move(token));
    skip(end - at_);
    return {};
  }

  std::string_view source_;
  std::string_view name_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;  // what was read last ended a line
  std::string brackets_;    // the closers that are due, innermost last
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source, std::string_view name) {
  const std::string normalized = normalize(source);
  return Lexer(normalized, name).run();
}

}  // namespace octavo::jinja
