#include "bench/percentiles.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octavo {
namespace {

TEST(Percentiles, NothingIsZero) { EXPECT_EQ(summarize({}), Summary{}); }

TEST(Percentiles, OneValueIsAllOfThem) {
  const Summary one = summarize({3});
  EXPECT_EQ(one, (Summary{.count = 1,
                          .mean = 3,
                          .std = 0,
                          .min = 3,
                          .p50 = 3,
                          .p90 = 3,
                          .p95 = 3,
                          .p99 = 3,
                          .max = 3}));
}

TEST(Percentiles, LieOnTheLineBetweenTwoValues) {
  const Summary four = summarize({4, 1, 3, 2});
  EXPECT_EQ(four.count, 4);
  EXPECT_DOUBLE_EQ(four.mean, 2.5);
  EXPECT_DOUBLE_EQ(four.std, std::sqrt(1.25));
  EXPECT_DOUBLE_EQ(four.min, 1);
  EXPECT_DOUBLE_EQ(four.median(), 2.5);
  EXPECT_DOUBLE_EQ(four.p90, 3.7);
  EXPECT_DOUBLE_EQ(four.p95, 3.85);
  EXPECT_DOUBLE_EQ(four.p99, 3.97);
  EXPECT_DOUBLE_EQ(four.max, 4);
}

TEST(Percentiles, HitTheValuesOfAHundredAndOne) {
  std::vector<double> values;
  for (int i = 100; i >= 0; --i) values.push_back(i);
  const Summary all = summarize(values);
  EXPECT_DOUBLE_EQ(all.p50, 50);
  EXPECT_DOUBLE_EQ(all.p90, 90);
  EXPECT_DOUBLE_EQ(all.p95, 95);
  EXPECT_DOUBLE_EQ(all.p99, 99);
}

TEST(Percentiles, EndsAreTheExtremes) {
  EXPECT_DOUBLE_EQ(percentile({1, 5, 9}, 0), 1);
  EXPECT_DOUBLE_EQ(percentile({1, 5, 9}, 100), 9);
}

}  // namespace
}  // namespace octavo
