#include "formats/gguf_part_name.h"

#include <fmt/format.h>

#include <algorithm>

namespace octavo {
namespace {

constexpr size_t kDigits = 5;

// Five digits at the end of `text`, taken off it.
std::optional<uint32_t> take_number(std::string_view& text) {
  if (text.size() < kDigits) return std::nullopt;
  const std::string_view digits = text.substr(text.size() - kDigits);
  if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  text.remove_suffix(kDigits);
  uint32_t number = 0;
  for (const char digit : digits) number = number * 10 + static_cast<uint32_t>(digit - '0');
  return number;
}

bool take_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

}  // namespace

std::string GgufPartName::of(uint32_t other) const {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, other, count);
}

std::optional<GgufPartName> parse_gguf_part_name(std::string_view path) {
  if (!take_end(path, ".gguf")) return std::nullopt;
  const auto count = take_number(path);
  if (!count || !take_end(path, "-of-")) return std::nullopt;
  const auto number = take_number(path);
  if (!number || !take_end(path, "-")) return std::nullopt;
  if (*number < 1 || *number > *count) return std::nullopt;
  return GgufPartName{std::string(path), *number, *count};
}

}  // namespace octavo
