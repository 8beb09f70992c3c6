#include "spec/ngram.h"

#include <gtest/gtest.h>

#include "support/byte_tokens.h"

#include <string>

namespace octavo {
namespace {

std::string draft(std::string_view text, int shortest, int longest, int most) {
  const auto known = testing::byte_tokens(text);
  DraftTask task{.tokens = known, .max_tokens = most};
  DraftTask* const tasks[] = {&task};
  NgramDrafter(shortest, longest).propose(tasks);
  std::string out;
  for (const TokenId token : task.draft) out.push_back(static_cast<char>(raw(token)));
  return out;
}

TEST(Ngram, WhatFollowedTheLastTokens) {
  EXPECT_EQ(draft("abcd..ab", 2, 4, 2), "cd");
  EXPECT_EQ(draft("abcd..ab", 2, 4, 9), "cd..abcd.");
}

TEST(Ngram, NothingBelowTheShortest) {
  EXPECT_EQ(draft("abcd..xb", 2, 4, 2), "");
  EXPECT_EQ(draft("abcd..xb", 1, 4, 2), "cd");
  EXPECT_EQ(draft("a", 1, 4, 2), "");
}

TEST(Ngram, TheLongestMatchThenTheLatest) {
  EXPECT_EQ(draft("xab1 yab2 xab", 2, 4, 1), "1");
  EXPECT_EQ(draft("xab1 yab2 .ab", 2, 4, 1), "2");
  EXPECT_EQ(draft("xab1 yab2 xab", 2, 2, 1), "2");  // no more than two are compared
}

TEST(Ngram, ARunOfOneToken) { EXPECT_EQ(draft("aaaa", 2, 3, 3), "aaa"); }

}  // namespace
}  // namespace octavo
