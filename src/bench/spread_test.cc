#include "bench/spread.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

Call call_of(const std::vector<double>& ratios) { return change_of(ratios).call; }

TEST(Spread, OneRoundTellsNothingOfNoise) {
  const Change change = change_of({1.19});
  EXPECT_EQ(change.call, Call::unknown);
  EXPECT_EQ(change.rounds, 1);
  EXPECT_EQ(change_text(change), "19 % more in one round, which may be noise");
}

TEST(Spread, ADifferenceIsCalledWhereTheIntervalLeavesOutOne) {
  EXPECT_EQ(call_of({3.0, 3.1, 2.9}), Call::differs);
  EXPECT_EQ(call_of({0.30, 0.31, 0.29}), Call::differs);
  // Of the logarithms, mean 0.1823 and deviation 0.0834 in 5 rounds: 0.1823 against 4.604 x 0.0373.
  EXPECT_EQ(call_of({1.08, 1.32, 1.2, 1.2, 1.2}), Call::differs);
  EXPECT_EQ(call_of({1.0, 1.42, 1.2, 1.2, 1.2}), Call::noise);
}

TEST(Spread, WhatWavesAboutOneIsNoise) {
  EXPECT_EQ(call_of({1.19, 0.9, 1.02, 0.98, 1.1}), Call::noise);
  EXPECT_EQ(call_of({1.19, 1.05, 1.3}), Call::noise);  // on one side, and few
  EXPECT_EQ(call_of({2.0, 2.2}), Call::noise);         // of two rounds almost all is
  EXPECT_EQ(call_of({1.003, 1.003, 1.003}), Call::noise);
}

TEST(Spread, RangesAreOfTheRounds) {
  const Change change = change_of({2.9, 3.3, 3.1, 3.0, 3.2});
  EXPECT_DOUBLE_EQ(change.ratio, 3.1);
  EXPECT_EQ(change_text(change), "3.1 x (ratio 2.9 to 3.3 in 5 rounds)");
  EXPECT_EQ(change_text(change_of({0.97, 1.04, 1.0, 1.01})),
            "no difference beyond noise (ratio 0.97 to 1.04 in 4 rounds)");
  EXPECT_EQ(change_text(change_of({1, 1, 1})), "the same");
}

TEST(Spread, LessIsNeverCalledFaster) {
  EXPECT_EQ(ratio_text(0.96), "4 % less");
  EXPECT_EQ(ratio_text(1.19), "19 % more");
  EXPECT_EQ(ratio_text(0.125), "8 x less");
  EXPECT_EQ(ratio_text(3.12), "3.12 x");
  EXPECT_EQ(ratio_text(1.0004), "the same");
}

}  // namespace
}  // namespace octavo
