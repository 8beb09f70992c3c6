#include "text/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace octavo {
namespace {

constexpr uint32_t bit(int category) { return uint32_t{1} << category; }

constexpr uint32_t kMarks =
    bit(UTF8PROC_CATEGORY_MN) | bit(UTF8PROC_CATEGORY_MC) | bit(UTF8PROC_CATEGORY_ME);
constexpr uint32_t kNumbers =
    bit(UTF8PROC_CATEGORY_ND) | bit(UTF8PROC_CATEGORY_NL) | bit(UTF8PROC_CATEGORY_NO);
constexpr uint32_t kPunctuation = bit(UTF8PROC_CATEGORY_PC) | bit(UTF8PROC_CATEGORY_PD) |
                                  bit(UTF8PROC_CATEGORY_PS) | bit(UTF8PROC_CATEGORY_PE) |
                                  bit(UTF8PROC_CATEGORY_PI) | bit(UTF8PROC_CATEGORY_PF) |
                                  bit(UTF8PROC_CATEGORY_PO);
constexpr uint32_t kOther =
    bit(UTF8PROC_CATEGORY_CC) | bit(UTF8PROC_CATEGORY_CF) | bit(UTF8PROC_CATEGORY_CO);
constexpr uint32_t kLetters = bit(UTF8PROC_CATEGORY_LU) | bit(UTF8PROC_CATEGORY_LL) |
                              bit(UTF8PROC_CATEGORY_LT) | bit(UTF8PROC_CATEGORY_LM) |
                              bit(UTF8PROC_CATEGORY_LO);
constexpr uint32_t kWord = kLetters | kMarks | bit(UTF8PROC_CATEGORY_ND) |
                           bit(UTF8PROC_CATEGORY_NL) | bit(UTF8PROC_CATEGORY_PC);

bool is_any(char32_t c, uint32_t categories) {
  return bit(utf8proc_category(static_cast<utf8proc_int32_t>(c))) & categories;
}

bool in(char32_t c, char32_t first, char32_t last) { return first <= c && c <= last; }

}  // namespace

char32_t utf8_char(std::string_view text, size_t at) {
  utf8proc_int32_t c = 0;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                   static_cast<utf8proc_ssize_t>(text.size() - at), &c);
  return static_cast<char32_t>(c);
}

size_t previous_utf8_char(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || in(c, '\t', '\r');
  return c == 0x85 || c == 0x2028 || c == 0x2029 || is_any(c, bit(UTF8PROC_CATEGORY_ZS));
}

bool is_numeric(char32_t c) { return is_any(c, kNumbers); }

bool is_punctuation(char32_t c) {
  if (c < 0x80) return in(c, '!', '/') || in(c, ':', '@') || in(c, '[', '`') || in(c, '{', '~');
  return is_any(c, kPunctuation);
}

bool is_other(char32_t c) { return is_any(c, kOther); }
bool is_mark(char32_t c) { return is_any(c, kMarks); }
bool is_nonspacing(char32_t c) { return is_any(c, bit(UTF8PROC_CATEGORY_MN)); }

bool is_han(char32_t c) {
  return in(c, 0x4E00, 0x9FFF) || in(c, 0x3400, 0x4DBF) || in(c, 0x20000, 0x2A6DF) ||
         in(c, 0x2A700, 0x2B73F) || in(c, 0x2B740, 0x2B81F) || in(c, 0x2B920, 0x2CEAF) ||
         in(c, 0xF900, 0xFAFF) || in(c, 0x2F800, 0x2FA1F);
}

// Alphabetic, less its few symbols: circled letters.
bool is_word(char32_t c) {
  return is_any(c, kWord) || in(c, 0x200C, 0x200D) || in(c, 0x24B6, 0x24E9) ||
         in(c, 0x1F130, 0x1F149) || in(c, 0x1F150, 0x1F169) || in(c, 0x1F170, 0x1F189);
}

void append_lowercase(std::string& out, char32_t c) {
  if (c == 0x130) {
    out += "i\u0307";
    return;
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

}  // namespace octavo
