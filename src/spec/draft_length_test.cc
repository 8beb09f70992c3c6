#include "spec/draft_length.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// Steps of 10 ms, 1 ms more for each sequence and `draft_ms` for each draft.
StepTimeModel model(double draft_ms) {
  StepTimeModel out;
  for (int i = 0; i < 400; ++i) {
    const StepWork work{.num_seqs = 1 + i % 16, .draft_tokens = i % 7};
    out.observe(work, (10 + work.num_seqs + draft_ms * work.draft_tokens) / 1000);
  }
  return out;
}

int wish(const AcceptanceRate& acceptance, int num_seqs, double draft_ms, int most = 8) {
  std::vector<DraftWish> wishes(static_cast<size_t>(num_seqs), DraftWish{&acceptance, most});
  cut_drafts(wishes, {.num_seqs = num_seqs}, model(draft_ms), 0);
  return wishes[0].depth;
}

TEST(DraftLength, AllWhereDraftsCostNothing) {
  EXPECT_EQ(wish(AcceptanceRate(), 1, 0), 8);
  EXPECT_EQ(wish(AcceptanceRate(), 1, 0, 3), 3);
}

TEST(DraftLength, NoneWhereADraftCostsAsMuchAsAStep) {
  EXPECT_EQ(wish(AcceptanceRate(), 1, 11), 0);
}

TEST(DraftLength, NoneWhereNoneComesTrue) {
  AcceptanceRate never;
  for (int i = 0; i < 200; ++i) never.observe(4, 0);
  EXPECT_LT(never.rate(0), 0.01);
  EXPECT_LT(never.rate(7), 0.01);
  EXPECT_EQ(wish(never, 1, 1), 0);
}

// The fuller the step, the cheaper is one more sequence's token beside it, and the less a draft is
// worth.
TEST(DraftLength, FewerInFullerSteps) {
  const AcceptanceRate usual;
  EXPECT_GT(wish(usual, 1, 1.5), 3);
  EXPECT_LT(wish(usual, 16, 1.5), wish(usual, 1, 1.5));
}

TEST(DraftLength, WhoDoesBetterGetsMore) {
  AcceptanceRate good, bad;
  for (int i = 0; i < 100; ++i) {
    good.observe(8, 8);
    bad.observe(8, 0);
  }
  std::vector<DraftWish> wishes = {{&bad, 8}, {&good, 8}};
  cut_drafts(wishes, {.num_seqs = 2}, model(2), 0);
  EXPECT_EQ(wishes[0].depth, 0);
  EXPECT_EQ(wishes[1].depth, 8);
}

TEST(DraftLength, SeveralForOnePlaceCostMore) {
  const AcceptanceRate usual;
  const std::vector<int> widths = {1, 3, 3, 3};
  std::vector<DraftWish> wishes = {{&usual, 4, widths}};
  cut_drafts(wishes, {.num_seqs = 1}, model(0.1), 0);
  EXPECT_EQ(wishes[0].depth, 4);
  wishes[0].depth = 4;
  cut_drafts(wishes, {.num_seqs = 1}, model(3), 0);
  EXPECT_EQ(wishes[0].depth, 1);
  EXPECT_GT(wish(usual, 1, 3, 4), 1);
}

TEST(DraftLength, WhatDraftingCostsCounts) {
  AcceptanceRate usual;
  std::vector<DraftWish> cheap = {{&usual, 8}}, dear = cheap;
  cut_drafts(cheap, {.num_seqs = 1}, model(0.1), 0);
  cut_drafts(dear, {.num_seqs = 1}, model(0.1), 0.005);
  EXPECT_EQ(cheap[0].depth, 8);
  EXPECT_LT(dear[0].depth, 4);
}

TEST(AcceptanceRate, PlacesApart) {
  AcceptanceRate rate;
  for (int i = 0; i < 200; ++i) rate.observe(3, i % 2 ? 3 : 1);
  EXPECT_GT(rate.rate(0), 0.99);
  EXPECT_NEAR(rate.rate(1), 0.5, 0.1);
  EXPECT_GT(rate.rate(2), 0.65);  // whenever it was reached; else it follows place 1
}

}  // namespace
}  // namespace octavo
