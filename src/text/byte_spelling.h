// SentencePiece's spelling of a byte that no piece has: <0x0A>.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo {

std::optional<uint8_t> parse_byte_spelling(std::string_view spelling);

}  // namespace octavo
