#include "sampling/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace octavo {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Probabilities 0.1, 0.4, 0.2, 0.2, 0.1: by rank the ids are 1, 2, 3, 0, 4.
const std::vector<float> kRow = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.2f),
                                 std::log(0.1f)};

std::vector<std::pair<int, int>> ids_and_ranks(const TokenLogprobs& logprobs) {
  std::vector<std::pair<int, int>> result;
  for (const LogprobEntry& e : logprobs.entries) result.emplace_back(raw(e.id), e.rank);
  return result;
}

TEST(Logprobs, AreTheTopKAndTheChosenOneByRank) {
  struct Case {
    int chosen, top_k;
    std::vector<std::pair<int, int>> expected;
  };
  const Case cases[] = {
      {1, 0, {{1, 1}}},
      {4, 0, {{4, 5}}},
      {1, 1, {{1, 1}}},
      {3, 2, {{1, 1}, {2, 2}, {3, 3}}},
      {0, 2, {{1, 1}, {2, 2}, {0, 4}}},
      {2, 3, {{1, 1}, {2, 2}, {3, 3}}},
      {2, 5, {{1, 1}, {2, 2}, {3, 3}, {0, 4}, {4, 5}}},
      {2, 1000, {{1, 1}, {2, 2}, {3, 3}, {0, 4}, {4, 5}}},
      {2, -1, {{1, 1}, {2, 2}, {3, 3}, {0, 4}, {4, 5}}},
  };
  for (const Case& c : cases) {
    const auto result = logprobs_of(kRow, TokenId{c.chosen}, c.top_k);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->chosen, TokenId{c.chosen});
    EXPECT_EQ(ids_and_ranks(*result), c.expected) << c.chosen << " of " << c.top_k;
    for (const LogprobEntry& e : result->entries) EXPECT_NEAR(e.logprob, kRow[raw(e.id)], 1e-6);
  }
}

TEST(Logprobs, AreFinite) {
  const std::vector<float> row = {-kInf, 0, -1e30f, -kInf};
  const auto result = logprobs_of(row, TokenId{3}, -1);
  ASSERT_TRUE(result);
  EXPECT_EQ(ids_and_ranks(*result),
            (std::vector<std::pair<int, int>>{{1, 1}, {2, 2}, {0, 3}, {3, 4}}));
  EXPECT_EQ(result->entries[0].logprob, 0);
  for (int i : {1, 2, 3}) EXPECT_EQ(result->entries[i].logprob, kLogprobFloor);
}

TEST(Logprobs, SurviveTheLargestFloats) {
  constexpr float kMax = std::numeric_limits<float>::max();
  const auto result = logprobs_of(std::vector<float>{kMax, -kMax}, TokenId{1}, 1);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->entries[0].logprob, 0);
  EXPECT_EQ(result->entries[1].logprob, kLogprobFloor);
}

TEST(Logprobs, RefuseBadRowsAndIds) {
  EXPECT_EQ(logprobs_of(std::vector<float>{0, std::nanf("")}, TokenId{0}, 1).error().code,
            ErrorCode::numeric_error);
  for (int id : {-1, 5})
    EXPECT_EQ(logprobs_of(kRow, TokenId{id}, 1).error().code, ErrorCode::invalid_argument);
}

TEST(Logprobs, EqualAFullSort) {
  constexpr int kTokens = 3000;
  std::mt19937 random(1);
  std::vector<float> row(kTokens);
  for (float& x : row) x = static_cast<float>(random() % 500) / 100;  // many ties
  std::vector<int> order(kTokens);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return row[a] > row[b]; });

  for (int top_k : {1, 7, 20, 1000, kTokens}) {
    const auto result = logprobs_of(row, TokenId{order[0]}, top_k);
    ASSERT_TRUE(result);
    ASSERT_EQ(result->entries.size(), static_cast<size_t>(top_k));
    for (int i = 0; i < top_k; ++i) {
      ASSERT_EQ(result->entries[i].id, TokenId{order[i]});
      ASSERT_EQ(result->entries[i].rank, i + 1);
    }
  }
  const auto all = logprobs_of(row, TokenId{0}, -1);
  double mass = 0;
  for (const LogprobEntry& e : all->entries) mass += std::exp(e.logprob);
  EXPECT_NEAR(mass, 1, 1e-5);
}

}  // namespace
}  // namespace octavo
