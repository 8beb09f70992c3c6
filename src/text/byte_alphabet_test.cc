#include "text/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

#include "text/utf8.h"

namespace octavo {
namespace {

std::string bytes_of(std::string_view spelling) {
  std::string out;
  append_spelled_bytes(out, spelling);
  return out;
}

TEST(ByteAlphabet, SpellsAsGpt2Does) {
  EXPECT_EQ(spell_bytes("hi there\n"), "hiĠthereĊ");
  EXPECT_EQ(spell_bytes("é"), "Ã©");
  EXPECT_EQ(spell_bytes(std::string_view("\0\x7F\xA0\xAD", 4)), "ĀġłŃ");
}

TEST(ByteAlphabet, EveryByteHasItsOwnCharacterAndComesBack) {
  std::set<std::string> spellings;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string bytes(1, static_cast<char>(byte));
    const std::string spelling = spell_bytes(bytes);
    EXPECT_FALSE(find_invalid_utf8(spelling));
    EXPECT_EQ(bytes_of(spelling), bytes);
    spellings.insert(spelling);
  }
  EXPECT_EQ(spellings.size(), 256u);
}

TEST(ByteAlphabet, OtherSpellingsStandForThemselves) {
  for (const char* spelling : {"<｜User｜>", "a b", "x\u0144", "中", "\xC3", "\xFF", "é\xC4("}) {
    EXPECT_EQ(bytes_of(spelling), spelling);
  }
}

}  // namespace
}  // namespace octavo
