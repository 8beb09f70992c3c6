#include "text/token_matcher.h"

#include <gtest/gtest.h>

#include <random>

namespace octavo {
namespace {

TokenMatcher make(const std::vector<std::string>& spellings) {
  std::vector<TokenMatcher::Entry> entries;
  for (const auto& spelling : spellings)
    entries.push_back({spelling, TokenId{static_cast<int32_t>(entries.size())}});
  auto matcher = TokenMatcher::create(std::move(entries));
  EXPECT_TRUE(matcher);
  return std::move(*matcher);
}

TEST(TokenMatcher, LeftmostThenLongest) {
  const TokenMatcher matcher = make({"<a>", "<a>b", "a", "", "<", "<a>"});
  const struct {
    const char* text;
    size_t from, until, begin, end;
    int id;
  } cases[] = {
      {"x<a>bc", 0, 6, 1, 5, 1}, {"x<a>c", 0, 5, 1, 4, 0},  // of two equal spellings the first id
      {"x<a>bc", 0, 4, 1, 4, 0},                            // a match must end inside
      {"x<a>bc", 2, 6, 2, 3, 2}, {"<", 0, 1, 0, 1, 4},
      {"xyz", 0, 3, 3, 3, -1},   {"", 0, 0, 0, 0, -1},
  };
  for (const auto& test : cases) {
    const auto match = matcher.find(test.text, test.from, test.until);
    EXPECT_EQ(match.begin, test.begin) << test.text;
    EXPECT_EQ(match.end, test.end) << test.text;
    EXPECT_EQ(raw(match.id), test.id) << test.text;
  }
}

TEST(TokenMatcher, AgreesWithSearchingForEachSpelling) {
  std::mt19937 random(5);
  const auto word = [&](size_t longest) {
    std::string text;
    for (size_t i = 1 + random() % longest; i > 0; --i) text.push_back("ab\x7F"[random() % 3]);
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> spellings;
    for (size_t i = random() % 8; i > 0; --i) spellings.push_back(word(5));
    const TokenMatcher matcher = make(spellings);
    const std::string text = word(20);
    TokenMatcher::Match expected{text.size(), text.size(), TokenId{-1}};
    for (size_t id = 0; id < spellings.size(); ++id) {
      const size_t at = text.find(spellings[id]);
      if (at == std::string::npos) continue;
      const size_t end = at + spellings[id].size();
      if (at < expected.begin || (at == expected.begin && end > expected.end))
        expected.begin = at, expected.end = end;
    }
    const auto match = matcher.find(text, 0, text.size());
    EXPECT_EQ(match.begin, expected.begin) << text;
    EXPECT_EQ(match.end, expected.end) << text;
  }
}

TEST(TokenMatcher, RefusesWhatCouldCutCharactersOrCostTooMuch) {
  const auto half = TokenMatcher::create({{"\x80", TokenId{7}}});
  ASSERT_FALSE(half);
  EXPECT_NE(half.error().message.find("tokens[7]"), std::string::npos);
  const auto longest =
      TokenMatcher::create({{std::string(TokenMatcher::kMaxSpelling + 1, 'a'), TokenId{3}}});
  ASSERT_FALSE(longest);
  EXPECT_NE(longest.error().message.find("512"), std::string::npos);
}

}  // namespace
}  // namespace octavo
