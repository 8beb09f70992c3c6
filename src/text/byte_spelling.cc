#include "text/byte_spelling.h"

#include <charconv>

namespace octavo {

std::optional<uint8_t> parse_byte_spelling(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>')
    return std::nullopt;
  unsigned value = 0;
  const auto [end, error] = std::from_chars(spelling.data() + 3, spelling.data() + 5, value, 16);
  if (error != std::errc{} || end != spelling.data() + 5) return std::nullopt;
  return static_cast<uint8_t>(value);
}

}  // namespace octavo
