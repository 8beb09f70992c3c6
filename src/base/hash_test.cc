#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace octavo {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

// Values of the published function; what lies on disk depends on them.
TEST(Hash, IsXxh3) {
  EXPECT_EQ(hash64({}), 0x2d06800538d394c2u);
  EXPECT_EQ(Hasher().result128(), (Hash128{0x99aa06d3014798d8u, 0x6001c324468d497fu}));
}

TEST(Hash, PiecesMakeTheHashOfTheWhole) {
  std::string text;
  for (int i = 0; i < 3000; ++i) text.push_back(static_cast<char>(i * 31 % 251));
  Hasher whole;
  whole.add(bytes(text));
  EXPECT_EQ(whole.result64(), hash64(bytes(text)));
  for (size_t cut : {0u, 1u, 240u, 256u, 1024u, 2999u, 3000u}) {
    Hasher pieces;
    pieces.add(bytes(text).first(cut));
    pieces.add(bytes(text).subspan(cut));
    EXPECT_EQ(pieces.result64(), whole.result64()) << cut;
    EXPECT_EQ(pieces.result128(), whole.result128()) << cut;
  }
}

TEST(Hash, OneBitChangesIt) {
  std::string text(5000, 'x');
  const uint64_t before = hash64(bytes(text));
  text[4321] ^= 1;
  EXPECT_NE(hash64(bytes(text)), before);
}

}  // namespace
}  // namespace octavo
