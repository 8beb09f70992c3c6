#include "text/jinja_unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

namespace octavo::jinja {
namespace {

using Bytes = const utf8proc_uint8_t*;

Bytes bytes_at(std::string_view text, size_t at) {
  return reinterpret_cast<Bytes>(text.data() + at);
}

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Characters whose capital form is several characters (Unicode SpecialCasing, without polytonic
// Greek).
struct Expansion {
  char32_t from;
  std::string_view upper, title;
};
constexpr Expansion kExpansions[] = {
    {0x00DF, "SS", "Ss"},
    {0x0149, "\u02BCN", "\u02BCN"},
    {0x01F0, "J\u030C", "J\u030C"},
    {0x0390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"},
    {0x03B0, "\u03A5\u0308\u0301", "\u03A5\u0308\u0301"},
    {0x0587, "\u0535\u0552", "\u0535\u0582"},
    {0x1E96, "H\u0331", "H\u0331"},
    {0x1E97, "T\u0308", "T\u0308"},
    {0x1E98, "W\u030A", "W\u030A"},
    {0x1E99, "Y\u030A", "Y\u030A"},
    {0x1E9A, "A\u02BE", "A\u02BE"},
    {0xFB00, "FF", "Ff"},
    {0xFB01, "FI", "Fi"},
    {0xFB02, "FL", "Fl"},
    {0xFB03, "FFI", "Ffi"},
    {0xFB04, "FFL", "Ffl"},
    {0xFB05, "ST", "St"},
    {0xFB06, "ST", "St"},
    {0xFB13, "\u0544\u0546", "\u0544\u0576"},
    {0xFB14, "\u0544\u0535", "\u0544\u0565"},
    {0xFB15, "\u0544\u053B", "\u0544\u056B"},
    {0xFB16, "\u054E\u0546", "\u054E\u0576"},
    {0xFB17, "\u0544\u053D", "\u0544\u056D"},
};

const Expansion* find_expansion(char32_t c) {
  const auto* found = std::lower_bound(std::begin(kExpansions), std::end(kExpansions), c,
                                       [](const Expansion& e, char32_t x) { return e.from < x; });
  return found != std::end(kExpansions) && found->from == c ? found : nullptr;
}

char32_t simple_case(char32_t c, Case wanted) {
  const auto code = static_cast<utf8proc_int32_t>(c);
  switch (wanted) {
    case Case::upper:
      return static_cast<char32_t>(utf8proc_toupper(code));
    case Case::lower:
      return static_cast<char32_t>(utf8proc_tolower(code));
    case Case::title:
      return static_cast<char32_t>(utf8proc_totitle(code));
  }
  return c;
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    utf8proc_int32_t code = 0;
    const auto length = utf8proc_iterate(bytes_at(text, at),
                                         static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (length <= 0) return at;
    at += static_cast<size_t>(length);
  }
  return std::nullopt;
}

size_t char_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

size_t count_chars(std::string_view text) {
  return text.size() -
         static_cast<size_t>(std::count_if(text.begin(), text.end(), is_continuation));
}

char32_t decode_char(std::string_view text, size_t at) {
  utf8proc_int32_t code = 0;
  utf8proc_iterate(bytes_at(text, at), static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  return static_cast<char32_t>(code);
}

void append_char(std::string& out, char32_t c) {
  utf8proc_uint8_t buffer[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), buffer);
  out.append(reinterpret_cast<const char*>(buffer), static_cast<size_t>(length));
}

size_t byte_of_char(std::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += char_bytes(text[at]);
  return at;
}

size_t previous_char(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && is_continuation(text[at]));
  return at;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || category(c) == UTF8PROC_CATEGORY_ZS || c == 0x2028 || c == 0x2029;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

bool is_alpha(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}

bool is_digit(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU; }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL; }

void append_cased(std::string& out, char32_t c, Case wanted) {
  if (wanted == Case::lower && c == 0x130) {
    out += "i\u0307";
    return;
  }
  const Expansion* expansion = wanted == Case::lower ? nullptr : find_expansion(c);
  if (expansion)
    out += wanted == Case::upper ? expansion->upper : expansion->title;
  else
    append_char(out, simple_case(c, wanted));
}

}  // namespace octavo::jinja
