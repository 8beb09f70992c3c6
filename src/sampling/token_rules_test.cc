#include "sampling/token_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace octavo {
namespace {

using Tokens = std::vector<TokenId>;
constexpr int kTokens = 70;

std::set<TokenId> barred_after(const TokenRules& rules, const Tokens& answer) {
  Tokens barred;
  rules.add_barred_after(answer, barred);
  return {barred.begin(), barred.end()};
}

TEST(TokenRules, ListsBecomeSets) {
  SamplingParams params;
  params.stop_token_ids = {TokenId{9}, TokenId{2}, TokenId{9}};
  params.allowed_token_ids.assign(kTokens, TokenId{69});
  params.allowed_token_ids.push_back(TokenId{0});
  const TokenRules rules = TokenRules::create(params, {}, kTokens).value();
  EXPECT_EQ(std::ssize(rules.stop_tokens()), 2);
  EXPECT_TRUE(rules.is_stop_token(TokenId{9}));
  EXPECT_FALSE(rules.is_stop_token(TokenId{3}));
  EXPECT_EQ(Tokens().size(), barred_after(rules, {TokenId{1}}).size());
  ASSERT_EQ(rules.allowed().size(), 2u);
  EXPECT_EQ(rules.allowed()[0], 1u);
  EXPECT_EQ(rules.allowed()[1], uint64_t{1} << 5);
}

TEST(TokenRules, NothingIsRuledOutByDefault) {
  EXPECT_TRUE(TokenRules().allowed().empty());
  EXPECT_FALSE(TokenRules().is_stop_token(TokenId{0}));
  EXPECT_TRUE(barred_after({}, {TokenId{1}}).empty());
}

TEST(TokenRules, WhatIsNoTokenIsRefused) {
  const auto refused = [](SamplingParams params, std::vector<Tokens> words) {
    const auto rules = TokenRules::create(params, words, kTokens);
    return !rules && rules.error().code == ErrorCode::invalid_argument;
  };
  for (const TokenId id : {TokenId{-1}, TokenId{kTokens}}) {
    EXPECT_TRUE(refused({.logit_bias = {{id, 1}}}, {}));
    EXPECT_TRUE(refused({.stop_token_ids = {id}}, {}));
    EXPECT_TRUE(refused({.allowed_token_ids = {id}}, {}));
    EXPECT_TRUE(refused({}, {{TokenId{1}, id}}));
  }
}

TEST(BadWords, AsComparingEachWord) {
  std::mt19937 dice(7);
  const auto word = [&](size_t most) {
    Tokens tokens(dice() % most);
    for (TokenId& token : tokens) token = TokenId{static_cast<int>(dice() % 3)};
    return tokens;
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<Tokens> words;
    for (size_t i = dice() % 12; i-- > 0;) {
      words.push_back(word(5));
      words.back().push_back(TokenId{static_cast<int>(dice() % kTokens)});
    }
    const TokenRules rules = TokenRules::create({}, words, kTokens).value();
    const Tokens answer = word(9);
    std::set<TokenId> expected;
    for (const Tokens& w : words) {
      const auto before = std::span(w).first(w.size() - 1);
      if (before.size() <= answer.size() &&
          std::ranges::equal(before, std::span(answer).last(before.size())))
        expected.insert(w.back());
    }
    ASSERT_EQ(barred_after(rules, answer), expected) << "round " << round;
  }
}

}  // namespace
}  // namespace octavo
