#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

Tokenizer make(TokenizerSpec spec) {
  auto tokenizer = Tokenizer::create(std::move(spec));
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message);
  return std::move(*tokenizer);
}

std::vector<std::string> stream(Detokenizer detokenizer, const std::vector<int>& ids) {
  std::vector<std::string> parts;
  for (const int id : ids) parts.push_back(detokenizer.push(TokenId{id}));
  parts.push_back(detokenizer.finish());
  return parts;
}

using Parts = std::vector<std::string>;

TEST(Detokenizer, NeverSplitsACharacter) {
  const Tokenizer tokenizer = make(testing::tiny_byte_spec());
  const struct {
    std::vector<int> ids;
    Parts parts;
  } cases[] = {
      {{}, {""}},
      {{259, 260}, {"hello", " w", ""}},
      {{0xF0, 0x9F, 0x98, 0x80, 'a'}, {"", "", "", "😀", "a", ""}},
      {{0xE4, 0xB8, 0xAD}, {"", "", "中", ""}},
      {{'a', 0xE4, 0xB8}, {"a", "", "", "\uFFFD"}},
      {{0xE4, 'b'}, {"", "\uFFFDb", ""}},
      {{0xE4, 259}, {"", "\uFFFDhello", ""}},
      {{0x80, 0x80}, {"\uFFFD", "\uFFFD", ""}},
      {{0xC3, 263, 0xA9}, {"", "\uFFFD<eos>", "\uFFFD", ""}},
      {{-1, 9999}, {"", "", ""}},
  };
  for (const auto& test : cases)
    EXPECT_EQ(stream(Detokenizer(tokenizer, false), test.ids), test.parts);
}

TEST(Detokenizer, SkipsControlTokensWhenAsked) {
  const Tokenizer tokenizer = make(testing::tiny_byte_spec());
  const std::vector<TokenId> shown = {TokenId{263}};
  EXPECT_EQ(stream(Detokenizer(tokenizer, true, SpacePrefix::keep, shown), {262, 'a', 263}),
            (Parts{"", "a", "<eos>", ""}));
  EXPECT_EQ(stream(Detokenizer(tokenizer, true), {262, 'a', 264, 263}),
            (Parts{"", "a", "<think>", "", ""}));
  EXPECT_EQ(stream(Detokenizer(tokenizer, false), {262, 'a', 264, 263}),
            (Parts{"<bos>", "a", "<think>", "<eos>", ""}));
}

TEST(Detokenizer, StripsOneAddedSpaceWhenAsked) {
  const Tokenizer tokenizer = make(testing::tiny_piece_spec({"▁a", "a"}));
  const int word = 259;
  EXPECT_EQ(stream(Detokenizer(tokenizer, true, SpacePrefix::strip), {1, word, word}),
            (Parts{"", "a", " a", ""}));
  EXPECT_EQ(stream(Detokenizer(tokenizer, true), {1, word, word}), (Parts{"", " a", " a", ""}));
}

TEST(Detokenizer, ByteTokensOfSentencePiece) {
  const Tokenizer tokenizer = make(testing::tiny_piece_spec({"▁a"}));
  EXPECT_EQ(stream(Detokenizer(tokenizer, false), {0xF0 + 3, 0x9F + 3, 0x98 + 3, 0x80 + 3, 259}),
            (Parts{"", "", "", "😀", " a", ""}));
}

TEST(Detokenizer, PartsJoinToTheWhole) {
  for (const TokenizerSpec& spec :
       {testing::tiny_byte_spec(), testing::tiny_piece_spec({"▁a", "é"})}) {
    const Tokenizer tokenizer = make(spec);
    std::mt19937 random(9);
    for (int round = 0; round < 2000; ++round) {
      std::vector<TokenId> ids;
      for (size_t i = random() % 12; i > 0; --i)
        ids.push_back(TokenId{static_cast<int32_t>(random() % 266)});
      for (const bool skip : {false, true}) {
        for (const SpacePrefix prefix : {SpacePrefix::keep, SpacePrefix::strip}) {
          Detokenizer detokenizer(tokenizer, skip, prefix);
          std::string text;
          for (const TokenId id : ids) {
            const std::string part = detokenizer.push(id);
            EXPECT_FALSE(find_invalid_utf8(part));
            text += part;
          }
          text += detokenizer.finish();
          EXPECT_EQ(text, tokenizer.decode(ids, skip, prefix));
        }
      }
    }
  }
}

}  // namespace
}  // namespace octavo
