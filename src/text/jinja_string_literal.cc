#include "text/jinja_string_literal.h"

#include <algorithm>
#include <charconv>

#include "text/jinja_unicode.h"

namespace octavo::jinja {
namespace {

constexpr std::string_view kSimple = "\\'\"abfnrtv";
constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";

Result<void> append_code(std::string& out, std::string_view digits, size_t wanted) {
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (digits.size() < wanted || error != std::errc() || end != digits.data() + digits.size())
    return fail(ErrorCode::template_error, "a string with a truncated \\x, \\u or \\U escape");
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    return fail(ErrorCode::template_error, "a string with an escape that is not a character");
  append_char(out, code);
  return {};
}

size_t octal_digits(std::string_view text) {
  size_t count = 0;
  while (count < 3 && count < text.size() && text[count] >= '0' && text[count] <= '7') ++count;
  return count;
}

size_t hex_digits_after(char letter) {
  return letter == 'x' ? 2 : letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
}

// One escape, text beginning after its backslash. Returns the bytes of text it used.
Result<size_t> append_escape(std::string& out, std::string_view text) {
  const char letter = text[0];
  if (const size_t simple = kSimple.find(letter); simple != std::string_view::npos) {
    out += kMeaning[simple];
    return 1;
  }
  if (letter == '\n') return 1;
  if (letter == 'N') return fail(ErrorCode::unsupported, "a \\N{...} escape in a string");
  if (const size_t digits = hex_digits_after(letter)) {
    OCTAVO_CHECK_OK(append_code(out, text.substr(1, digits), digits));
    return 1 + digits;
  }
  if (const size_t digits = octal_digits(text)) {
    uint32_t code = 0;
    std::from_chars(text.data(), text.data() + digits, code, 8);
    append_char(out, code);
    return digits;
  }
  out += '\\';
  return 0;
}

}  // namespace

Result<std::string> unescape(std::string_view literal) {
  std::string out;
  for (size_t at = 0; at < literal.size();) {
    const size_t slash = std::min(literal.find('\\', at), literal.size());
    out += literal.substr(at, slash - at);
    if (slash + 1 >= literal.size()) break;
    OCTAVO_TRY(const size_t used, append_escape(out, literal.substr(slash + 1)));
    at = slash + 1 + used;
  }
  return out;
}

}  // namespace octavo::jinja
