// The byte alphabet of GPT-2: every byte has one printable character that stands for it in
// vocabularies and merges. Printable Latin-1 bytes stand for themselves; the other 68 take U+0100
// and up, in order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

void append_byte_spelling(std::string& out, uint8_t byte);

// "hi there" -> "hiĠthere"
std::string spell_bytes(std::string_view bytes);

// Appends the bytes that `spelling` stands for; a spelling with a character outside the alphabet
// stands for itself.
void append_spelled_bytes(std::string& out, std::string_view spelling);

}  // namespace octavo
