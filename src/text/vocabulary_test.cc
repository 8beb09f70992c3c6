#include "text/vocabulary.h"

#include <gtest/gtest.h>

#include <limits>

namespace octavo {
namespace {

StringTable table(const std::vector<std::string>& spellings) {
  StringTable out;
  for (const auto& spelling : spellings) out.push_back(spelling);
  return out;
}

TEST(Vocabulary, FindsOrdinaryTokensOnly) {
  const auto vocabulary = Vocabulary::create(
      table({"a", "<s>", "<unk>", "ud", "un", "<0x00>", "a", ""}),
      {TokenType::normal, TokenType::control, TokenType::unknown, TokenType::user_defined,
       TokenType::unused, TokenType::byte, TokenType::normal, TokenType::normal},
      {});
  ASSERT_TRUE(vocabulary);
  EXPECT_EQ(vocabulary->find("a"), TokenId{0});  // the first of two
  EXPECT_EQ(vocabulary->find("ud"), TokenId{3});
  EXPECT_EQ(vocabulary->find("un"), TokenId{4});
  for (const char* none : {"<s>", "<unk>", "<0x00>", "", "b", "much longer than any"}) {
    EXPECT_FALSE(vocabulary->find(none)) << none;
  }
  EXPECT_TRUE(vocabulary->is_control(TokenId{2}));
  EXPECT_FALSE(vocabulary->contains(TokenId{8}));
  EXPECT_FALSE(vocabulary->contains(TokenId{-1}));
}

TEST(Vocabulary, FindsEachOfMany) {
  StringTable spellings;
  for (int i = 0; i < 20000; ++i) spellings.push_back("token" + std::to_string(i));
  const auto vocabulary = Vocabulary::create(std::move(spellings), {}, {});
  ASSERT_TRUE(vocabulary);
  for (int i = 0; i < 20000; ++i)
    EXPECT_EQ(vocabulary->find("token" + std::to_string(i)), TokenId{i});
  EXPECT_FALSE(vocabulary->find("token20000"));
}

TEST(Vocabulary, RefusesWhatDoesNotFit) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const struct {
    std::vector<std::string> spellings;
    std::vector<TokenType> types;
    std::vector<float> scores;
    const char* message;
  } cases[] = {
      {{}, {}, {}, "no vocabulary"},
      {{"a", "b"}, {TokenType::normal}, {}, "token_type has 1 entries for 2 tokens"},
      {{"a"}, {}, {1, 2}, "scores has 2 entries for 1 tokens"},
      {{"a"}, {TokenType{0}}, {}, "token_type[0] is 0"},
      {{"a"}, {TokenType{7}}, {}, "token_type[0] is 7"},
      {{"a", "b"}, {}, {0, nan}, "scores[1]"},
  };
  for (const auto& test : cases) {
    const auto vocabulary = Vocabulary::create(table(test.spellings), test.types, test.scores);
    ASSERT_FALSE(vocabulary) << test.message;
    EXPECT_NE(vocabulary.error().message.find(test.message), std::string::npos)
        << vocabulary.error().message;
  }
}

}  // namespace
}  // namespace octavo
