#include "bench/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "bench/percentiles.h"

namespace octavo {
namespace {

std::vector<double> gaps(const Arrivals& arrivals, int count) {
  const std::vector<double> times = arrival_times(arrivals, count);
  EXPECT_EQ(times.front(), 0);
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  std::vector<double> out;
  for (size_t i = 1; i < times.size(); ++i) out.push_back(times[i] - times[i - 1]);
  return out;
}

TEST(Arrivals, AllAtOnceWithoutARate) {
  EXPECT_EQ(arrival_times({}, 3), (std::vector<double>{0, 0, 0}));
}

// The gamma distribution of shape k and mean m has the deviation m / sqrt(k); 20,000 draws lie
// within 5 % of both.
TEST(Arrivals, HaveTheRateAndTheBurstinessThatIsAskedFor) {
  for (const double burstiness : {0.25, 1.0, 4.0}) {
    const Summary summary = summarize(gaps({.rate = 50, .burstiness = burstiness}, 20'001));
    EXPECT_NEAR(summary.mean, 1.0 / 50, 0.05 / 50) << burstiness;
    EXPECT_NEAR(summary.std, summary.mean / std::sqrt(burstiness), 0.05 * summary.std);
  }
}

TEST(Arrivals, FollowFromTheSeed) {
  EXPECT_EQ(arrival_times({.rate = 5, .seed = 7}, 9), arrival_times({.rate = 5, .seed = 7}, 9));
  EXPECT_NE(arrival_times({.rate = 5, .seed = 7}, 9), arrival_times({.rate = 5, .seed = 8}, 9));
}

TEST(Arrivals, ChangeTheirRateOverARamp) {
  constexpr int kCount = 4001;
  for (const char* text : {"linear:10:90", "exponential:10:90"}) {
    const auto ramp = parse_ramp_up(text);
    ASSERT_TRUE(ramp);
    const auto all = gaps({.ramp_up = *ramp, .burstiness = 100}, kCount);
    const auto mean_of = [&](size_t begin) {
      return summarize({all.begin() + begin, all.begin() + begin + 100}).mean;
    };
    EXPECT_NEAR(mean_of(0), 1 / 10.0, 0.1 / 10) << text;
    EXPECT_NEAR(mean_of(kCount - 101), 1 / 90.0, 0.1 / 90) << text;
    const double middle = ramp->exponential ? 30 : 50;
    EXPECT_NEAR(mean_of(kCount / 2 - 50), 1 / middle, 0.1 / middle) << text;
  }
}

TEST(Arrivals, RefuseWhatIsNoRamp) {
  for (const char* text : {"", "linear", "linear:1", "linear:1:", "linear:0:1", "cubic:1:2",
                           "linear:1:2:3", "linear:nan:1", "linear:1:inf"})
    EXPECT_FALSE(parse_ramp_up(text)) << text;
}

}  // namespace
}  // namespace octavo
