#include "spec/exit_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sampling/logits.h"
#include "spec/exit_probe.h"
#include "support/stub_model.h"

namespace octavo {
namespace {

using testing::hash_logits;
using testing::StubModel;

constexpr ExitCosts kCosts = {.step_s = 10, .verify_token_s = 1, .layer_s = 1};

std::vector<ExitSample> samples(int agree, int differ, float confidence = 1) {
  std::vector<ExitSample> out(static_cast<size_t>(agree), {true, confidence});
  out.resize(static_cast<size_t>(agree + differ), {false, confidence});
  return out;
}

TEST(ExitPrediction, CountsWhatDraftsCostAndBring) {
  // A draft for 10 - 6 = 4, its verification 1: of two tokens, always both.
  const ExitPrediction one = predict_exit(samples(10, 0), 6, kCosts);
  EXPECT_EQ(one.num_drafts, 8);  // the more the better
  EXPECT_DOUBLE_EQ(one.speedup, 9 * 10 / (10 + 8 * 5.0));
  // Half of them come true: 1.5 tokens for 15, 1.75 for 20.
  const ExitPrediction half = predict_exit(samples(5, 5), 6, kCosts);
  EXPECT_EQ(half.num_drafts, 1);
  EXPECT_DOUBLE_EQ(half.accepted, 0.5);
  EXPECT_DOUBLE_EQ(half.speedup, 1);
  EXPECT_LT(predict_exit(samples(0, 10), 6, kCosts).speedup, 0.72);
}

TEST(ExitPrediction, ChoosesTheConfidenceThatTellsGoodDraftsFromBad) {
  std::vector<ExitSample> mixed = samples(20, 0, 0.85f);
  for (const ExitSample& bad : samples(1, 9, 0.45f)) mixed.push_back(bad);
  const ExitPrediction best = predict_exit(mixed, 8, kCosts);
  EXPECT_GT(best.threshold, 0.45);
  EXPECT_LT(best.threshold, 0.85);
  EXPECT_NEAR(best.drafted, 2.0 / 3, 1e-9);
  EXPECT_DOUBLE_EQ(best.accepted, 1);
  EXPECT_GT(best.speedup, 1.1);
}

// Layers 2 and 5 change nothing, 0 everything, each other one a tenth.
TEST(ExitSearch, FindsTheLayersThatDoNotMatter) {
  int tried = 0;
  ExitSearch search{.num_layers = 8,
                    .costs = kCosts,
                    .sample = [&](std::span<const int> skipped) -> Result<std::vector<ExitSample>> {
                      ++tried;
                      EXPECT_TRUE(std::is_sorted(skipped.begin(), skipped.end()));
                      EXPECT_EQ(std::set(skipped.begin(), skipped.end()).size(), skipped.size());
                      int wrong = 0;
                      for (const int layer : skipped)
                        wrong += layer == 0 ? 100 : layer == 2 || layer == 5 ? 0 : 10;
                      return samples(std::max(100 - wrong, 0), std::min(wrong, 100));
                    }};
  const auto found = search_exit(search);
  ASSERT_TRUE(found);
  EXPECT_EQ((*found)[1].skipped_layers, (std::vector{2, 5}));
  for (size_t i = 0; i < found->size(); ++i) EXPECT_EQ((*found)[i].skipped_layers.size(), i + 1);
  const ExitCandidate& best = best_exit(*found);
  EXPECT_FALSE(std::ranges::count(best.skipped_layers, 0));
  for (const ExitCandidate& other : *found)
    EXPECT_LE(other.prediction.speedup, best.prediction.speedup);
  // At most all but one are skipped, and it gives up when nothing is gained.
  EXPECT_LE(found->size(), 7u);
  EXPECT_LE(tried, 8 + 7 * 8);
}

TEST(ExitSearch, AFailureEndsIt) {
  const auto found = search_exit(
      {.num_layers = 3, .costs = kCosts, .sample = [](auto) -> Result<std::vector<ExitSample>> {
         return fail(ErrorCode::invalid_argument, "no");
       }});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().message, "no");
}

// The stub with skipped layers differs from the whole one after every third token.
TEST(ExitProbe, ComparesPlaceByPlace) {
  constexpr int kTokens = 280;
  StubModel model(kTokens, 160, 64, hash_logits, 32);
  std::vector<TokenId> text;
  for (int i = 0; i < 100; ++i) text.push_back(TokenId{'a' + (i * 7) % 26});
  const auto probe = ExitProbe::create(model, text, 40, kTokens);
  ASSERT_TRUE(probe) << probe.error().message;
  for (int again = 0; again < 2; ++again) {
    const auto found = (*probe)->sample(std::vector{1});
    ASSERT_EQ(found.size(), 40u);
    for (size_t i = 0; i < found.size(); ++i) {
      const size_t position = 16 + i * 84 / 40;
      std::vector<float> row(kTokens);
      hash_logits({text.begin(), text.begin() + static_cast<long>(position) + 1}, row);
      const bool differs = raw(text[position]) % 3 == 0 && raw(argmax(row)) != 'A';
      EXPECT_EQ(found[i].agrees, !differs) << position;
      EXPECT_GT(found[i].confidence, 0);
      EXPECT_LE(found[i].confidence, 1);
    }
    for (const ExitSample& sample : (*probe)->sample({})) EXPECT_TRUE(sample.agrees);
  }
  const ExitCosts costs = (*probe)->measure_costs();
  EXPECT_GT(costs.step_s, 0);
  EXPECT_GE(costs.layer_s, 0);
}

TEST(ExitProbe, TooLittleOfAnything) {
  StubModel model(280, 160, 20, hash_logits, 32);
  const auto short_text = ExitProbe::create(model, std::vector<TokenId>(40, TokenId{'a'}), 30, 280);
  ASSERT_FALSE(short_text);
  EXPECT_EQ(short_text.error().code, ErrorCode::invalid_argument);
  const auto few_blocks = ExitProbe::create(model, std::vector<TokenId>(60, TokenId{'a'}), 30, 280);
  ASSERT_FALSE(few_blocks);
  EXPECT_EQ(few_blocks.error().code, ErrorCode::resource_exhausted);
}

TEST(TopProbability, IsThatOfTheLargest) {
  std::vector<float> row(1003, -1.5f);
  row[700] = 2;
  row[3] = -std::numeric_limits<float>::infinity();
  EXPECT_NEAR(top_probability(row), std::exp(2 - log_sum_exp(row)), 1e-4);
  row[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(top_probability(row) >= 0);
}

}  // namespace
}  // namespace octavo
