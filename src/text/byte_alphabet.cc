#include "text/byte_alphabet.h"

#include <array>

#include "text/utf8.h"

namespace octavo {
namespace {

constexpr size_t kAlphabetEnd = 0x144;  // U+0100 plus the 68 bytes that do not stand for themselves

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char16_t, 256> make_characters() {
  std::array<char16_t, 256> characters{};
  char16_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    characters[byte] = stands_for_itself(byte) ? static_cast<char16_t>(byte) : next++;
  }
  return characters;
}

constexpr std::array<char16_t, 256> kCharacters = make_characters();

constexpr std::array<int16_t, kAlphabetEnd> make_bytes() {
  std::array<int16_t, kAlphabetEnd> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (int byte = 0; byte < 256; ++byte) bytes[kCharacters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}

constexpr std::array<int16_t, kAlphabetEnd> kBytes = make_bytes();

// The byte that the character at `at` stands for, or -1. All characters of the alphabet have one or
// two bytes.
int read_byte(std::string_view spelling, size_t& at) {
  const uint8_t lead = static_cast<uint8_t>(spelling[at++]);
  if (lead < 0x80) return kBytes[lead];
  if (lead < 0xC2 || lead > 0xDF || at == spelling.size()) return -1;
  const uint8_t tail = static_cast<uint8_t>(spelling[at++]);
  if ((tail & 0xC0) != 0x80) return -1;
  const size_t character = static_cast<size_t>(lead & 0x1F) << 6 | (tail & 0x3F);
  return character < kAlphabetEnd ? kBytes[character] : -1;
}

}  // namespace

void append_byte_spelling(std::string& out, uint8_t byte) { append_utf8(out, kCharacters[byte]); }

std::string spell_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char byte : bytes) append_byte_spelling(out, static_cast<uint8_t>(byte));
  return out;
}

void append_spelled_bytes(std::string& out, std::string_view spelling) {
  const size_t start = out.size();
  for (size_t at = 0; at < spelling.size();) {
    const int byte = read_byte(spelling, at);
    if (byte < 0) {
      out.resize(start);
      out.append(spelling);
      return;
    }
    out.push_back(static_cast<char>(byte));
  }
}

}  // namespace octavo
