#include "text/normal_form.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "text/utf8.h"

namespace octavo {
namespace {

// Below U+0300 every character is its own NFC, and no lead byte there is above 0xCB; for the other
// forms that holds of ASCII only.
bool may_change(std::string_view text, NormalForm form) {
  const uint8_t least = form == NormalForm::nfc ? 0xCC : 0x80;
  return std::any_of(text.begin(), text.end(),
                     [=](char byte) { return static_cast<uint8_t>(byte) >= least; });
}

bool is_compatible(NormalForm form) { return form == NormalForm::nfkc || form == NormalForm::nfkd; }

bool is_composed(NormalForm form) { return form == NormalForm::nfc || form == NormalForm::nfkc; }

bool is_combining(utf8proc_int32_t character) {
  return utf8proc_get_property(character)->combining_class != 0;
}

std::vector<utf8proc_int32_t> decompose(std::string_view text, bool compatible) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size() + text.size() / 2);
  for (size_t at = 0; at < text.size();) {
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
    utf8proc_int32_t character = 0;
    at += utf8proc_iterate(bytes, utf8_char_size(text, at), &character);
    utf8proc_int32_t parts[18];  // the longest decomposition
    int boundary = 0;
    const auto count = utf8proc_decompose_char(character, parts, 18, options, &boundary);
    characters.insert(characters.end(), parts, parts + count);
  }
  return characters;
}

// Canonical order: each run of marks by combining class, stable. utf8proc's own sort is quadratic.
void order_marks(std::vector<utf8proc_int32_t>& characters) {
  const auto by_class = [](utf8proc_int32_t a, utf8proc_int32_t b) {
    return utf8proc_get_property(a)->combining_class < utf8proc_get_property(b)->combining_class;
  };
  for (auto at = characters.begin(); at != characters.end();) {
    const auto run = std::find_if(at, characters.end(), is_combining);
    at = std::find_if_not(run, characters.end(), is_combining);
    std::stable_sort(run, at, by_class);
  }
}

}  // namespace

std::string normalize(std::string_view text, NormalForm form) {
  if (!may_change(text, form)) return std::string(text);
  auto characters = decompose(text, is_compatible(form));
  order_marks(characters);
  auto count = static_cast<utf8proc_ssize_t>(characters.size());
  if (is_composed(form))
    count = utf8proc_normalize_utf32(
        characters.data(), count,
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    append_utf8(out, static_cast<char32_t>(characters[i]));
  return out;
}

std::string normalize_nfc(std::string_view text) { return normalize(text, NormalForm::nfc); }

}  // namespace octavo
