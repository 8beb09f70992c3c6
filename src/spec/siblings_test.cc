#include "spec/siblings.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octavo {
namespace {

TEST(Siblings, TheNextBestTokens) {
  const std::vector<float> logits = {std::log(1.0f), std::log(4.0f), std::log(3.0f),
                                     std::log(2.0f)};
  double probability = 0;
  const auto found = siblings_of(logits, 5, TokenId{1}, 2, probability);
  EXPECT_NEAR(probability, 0.4, 1e-6);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].token, TokenId{2});
  EXPECT_NEAR(found[0].probability, 0.3, 1e-6);
  EXPECT_EQ(found[1].token, TokenId{3});
  EXPECT_EQ(found[1].place, 5);
  EXPECT_EQ(siblings_of(logits, 0, TokenId{1}, 7, probability).size(), 3u);
}

DraftTask chain(std::vector<int> tokens, int max_tokens) {
  DraftTask task{.tokens = {}, .max_tokens = max_tokens};
  for (const int token : tokens) task.draft.push_back(TokenId{token});
  return task;
}

TEST(Siblings, TheLikelyOnesReplaceTheEndOfTheChain) {
  DraftTask task = chain({1, 2, 3, 4}, 4);
  const std::vector<double> probabilities = {0.5, 0.9, 0.3, 0.9};
  const std::vector<SiblingGuess> siblings = {
      {0, TokenId{8}, 0.4}, {1, TokenId{9}, 0.05}, {2, TokenId{7}, 0.6}};
  add_siblings(task, probabilities, siblings);
  // 0.5 0.45, beside them 0.4 and 0.45 * 0.6; not the third of the chain, 0.135.
  EXPECT_EQ(task.draft, (std::vector{TokenId{1}, TokenId{2}, TokenId{8}, TokenId{7}}));
  EXPECT_EQ(task.parents, (std::vector<int>{-1, 0, -1, 1}));
}

TEST(Siblings, ASureChainStaysOne) {
  DraftTask task = chain({1, 2}, 2);
  add_siblings(task, std::vector<double>{0.9, 0.9},
               std::vector<SiblingGuess>{{0, TokenId{8}, 0.05}, {1, TokenId{9}, 0.05}});
  EXPECT_EQ(task.draft, (std::vector{TokenId{1}, TokenId{2}}));
  EXPECT_TRUE(task.parents.empty());
}

}  // namespace
}  // namespace octavo
