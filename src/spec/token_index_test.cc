#include "spec/token_index.h"

#include <gtest/gtest.h>

#include "support/byte_tokens.h"

#include <string_view>

namespace octavo {
namespace {

std::string text(const std::vector<TokenId>& tokens) {
  std::string out;
  for (const TokenId token : tokens) out.push_back(static_cast<char>(raw(token)));
  return out;
}

TokenIndex index_of(std::initializer_list<std::string_view> texts) {
  TokenIndex index;
  for (const std::string_view text : texts) {
    for (const TokenId token : testing::byte_tokens(text)) index.append(token);
    index.end_text();
  }
  return index;
}

std::string after(const TokenIndex& index, std::string_view context, ContinuationLimits limits) {
  return text(index.continuation(testing::byte_tokens(context), limits).tokens);
}

TEST(TokenIndex, LongestMatchWins) {
  const TokenIndex index = index_of({"xbcQQ", "abcdef", "ybcRR"});
  EXPECT_EQ(after(index, "..abc", {.max_tokens = 3}), "def");
  EXPECT_EQ(after(index, "..ybc", {.max_tokens = 9}), "RR");
}

TEST(TokenIndex, NothingForOneTokenThatMatches) {
  EXPECT_EQ(after(index_of({"abcdef"}), "..c", {.max_tokens = 3}), "");
  EXPECT_EQ(after(index_of({"abcdef"}), "c", {.max_tokens = 3}), "");
  EXPECT_EQ(after(index_of({}), "abc", {.max_tokens = 3}), "");
}

TEST(TokenIndex, GoesNotBeyondAText) {
  EXPECT_EQ(after(index_of({"abc", "def"}), "abc", {.max_tokens = 5}), "");
  EXPECT_EQ(after(index_of({"abc", "def"}), "ab", {.max_tokens = 5}), "c");
}

TEST(TokenIndex, TheMostFrequentContinuation) {
  const TokenIndex index = index_of({"ab1x", "ab2y", "ab1z", "ab3y"});
  const Continuation found = index.continuation(testing::byte_tokens("ab"), {.max_tokens = 2});
  EXPECT_EQ(text(found.tokens), "1z");  // of x and z the later one
  EXPECT_DOUBLE_EQ(found.probability, 0.5 * 0.5);
  EXPECT_EQ(found.match_length, 2);
  EXPECT_EQ(after(index, "ab", {.max_tokens = 2, .min_probability = 0.4}), "1");
}

TEST(TokenIndex, SeveralWaysOn) {
  const TokenIndex index = index_of({"ab1x", "ab2y", "ab1z", "ab3y", "ab1z", "ab2y"});
  const Continuation found =
      index.continuation(testing::byte_tokens("ab"), {.max_tokens = 5, .branching_factor = 2});
  // 1 half of the time, with z after it twice of three times; 2 a third, always with y.
  EXPECT_EQ(text(found.tokens), "1zx2y");
  EXPECT_EQ(found.parents, (std::vector<int>{-1, 0, 0, -1, 3}));
  EXPECT_NEAR(found.probability, 1.0 / 6, 1e-12);
  const Continuation cut =
      index.continuation(testing::byte_tokens("ab"), {.max_tokens = 3, .branching_factor = 2});
  EXPECT_EQ(text(cut.tokens).substr(0, 1), "1");
  EXPECT_EQ(cut.tokens.size(), 3u);
}

TEST(TokenIndex, LengthFollowsTheMatch) {
  const TokenIndex index = index_of({"abcdefghij"});
  EXPECT_EQ(after(index, "abc", {.max_tokens = 9, .tokens_per_match = 1}), "def");
  EXPECT_EQ(after(index, "abc", {.max_depth = 2, .max_tokens = 9, .tokens_per_match = 1}), "de");
  EXPECT_EQ(after(index, "abc", {.max_tokens = 9, .tokens_per_match = 2}), "defghi");
}

// A text that is its own index: what follows is what stood after the last time.
TEST(TokenIndex, FindsWhatTheTextItselfSaid) {
  TokenIndex index;
  const auto all = testing::byte_tokens("the cat sat. the cat ");
  for (const TokenId token : all) index.append(token);
  EXPECT_EQ(text(index.continuation(all, {.max_tokens = 4}).tokens), "sat.");
}

}  // namespace
}  // namespace octavo
