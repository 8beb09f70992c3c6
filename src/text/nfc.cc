#include "text/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "text/utf8.h"

namespace octavo {
namespace {

// Below U+0300 every character is its own normal form, and no lead byte there is above 0xCB.
bool may_change(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char byte) { return static_cast<uint8_t>(byte) >= 0xCC; });
}

bool is_combining(utf8proc_int32_t character) {
  return utf8proc_get_property(character)->combining_class != 0;
}

std::vector<utf8proc_int32_t> decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> characters;
  characters.reserve(text.size() + text.size() / 2);
  for (size_t at = 0; at < text.size();) {
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at;
    utf8proc_int32_t character = 0;
    at += utf8proc_iterate(bytes, utf8_char_size(text, at), &character);
    utf8proc_int32_t parts[8];  // canonical decompositions have at most 4
    int boundary = 0;
    const auto count = utf8proc_decompose_char(
        character, parts, 8, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE),
        &boundary);
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

std::string normalize_nfc(std::string_view text) {
  if (!may_change(text)) return std::string(text);
  auto characters = decompose(text);
  order_marks(characters);
  const auto count =
      utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    append_utf8(out, static_cast<char32_t>(characters[i]));
  return out;
}

}  // namespace octavo
