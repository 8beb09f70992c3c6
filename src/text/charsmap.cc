#include "text/charsmap.h"

#include <utf8proc.h>

#include <cstring>

#include "text/characters.h"

namespace octavo {
namespace {

constexpr size_t kLongGrapheme = 6;  // bytes

// A unit of the trie, as Darts-clone packs it.
bool has_leaf(uint32_t unit) { return (unit >> 8) & 1; }
uint32_t value_of(uint32_t unit) { return unit & 0x7FFFFFFF; }
uint32_t label_of(uint32_t unit) { return unit & 0x800000FF; }
uint32_t offset_of(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

}  // namespace

Result<Charsmap> Charsmap::create(std::string_view bytes) {
  uint32_t trie = 0;
  if (bytes.size() >= sizeof(trie)) std::memcpy(&trie, bytes.data(), sizeof(trie));
  if (trie == 0 || trie % sizeof(uint32_t) != 0 || trie > bytes.size() - sizeof(trie))
    return fail(ErrorCode::corrupt_file,
                "the normalizer's precompiled_charsmap does not begin with the size of its trie");
  Charsmap map;
  map.units_.resize(trie / sizeof(uint32_t));
  std::memcpy(map.units_.data(), bytes.data() + sizeof(trie), trie);
  map.replacements_ = bytes.substr(sizeof(trie) + trie);
  if (find_invalid_utf8(map.replacements_))
    return fail(ErrorCode::corrupt_file,
                "the normalizer's precompiled_charsmap has replacements that are not UTF-8");
  return map;
}

std::optional<std::string_view> Charsmap::find(std::string_view key) const {
  size_t at = offset_of(units_[0]);
  for (const char byte : key) {
    at ^= static_cast<uint8_t>(byte);
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != static_cast<uint8_t>(byte))
      return std::nullopt;
    const bool leaf = has_leaf(units_[at]);
    at ^= offset_of(units_[at]);
    if (!leaf) continue;
    const size_t begin = at < units_.size() ? value_of(units_[at]) : SIZE_MAX;
    // Replacements are valid UTF-8 together; one must not begin inside a character.
    if (begin >= replacements_.size() ||
        (static_cast<uint8_t>(replacements_[begin]) & 0xC0) == 0x80)
      return std::nullopt;
    const size_t end = replacements_.find('\0', begin);
    return std::string_view(replacements_).substr(begin, end - begin);
  }
  return std::nullopt;
}

void Charsmap::append(std::string_view grapheme, std::string& out) const {
  if (grapheme.size() < kLongGrapheme) {
    if (const auto whole = find(grapheme)) {
      out.append(*whole);
      return;
    }
  }
  for_each_char(grapheme,
                [&](char32_t, std::string_view bytes) { out.append(find(bytes).value_or(bytes)); });
}

std::string Charsmap::apply(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  size_t begin = 0;
  utf8proc_int32_t state = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t next = at + utf8_char_size(text, at);
    const bool ends =
        next == text.size() || utf8proc_grapheme_break_stateful(
                                   static_cast<utf8proc_int32_t>(utf8_char(text, at)),
                                   static_cast<utf8proc_int32_t>(utf8_char(text, next)), &state);
    if (ends) {
      append(text.substr(begin, next - begin), out);
      begin = next;
    }
    at = next;
  }
  return out;
}

}  // namespace octavo
