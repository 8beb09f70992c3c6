// How well counts agree with what they should be.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace octavo::testing {

// The regularised upper incomplete gamma function Q(a, x), by its series where x is small and by
// its continued fraction (Lentz) elsewhere.
inline double upper_gamma(double a, double x) {
  if (x <= 0) return 1;
  const double scale = std::exp(a * std::log(x) - x - std::lgamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (double n = a + 1; term > sum * 1e-15; ++n) sum += term *= x / n;
    return 1 - scale * sum;
  }
  double b = x + 1 - a, c = 1e300, d = 1 / b, fraction = d;
  for (int n = 1; n < 10'000; ++n) {
    const double factor = n * (a - n);
    b += 2;
    d = 1 / (factor * d + b);
    c = b + factor / c;
    fraction *= c * d;
    if (std::abs(c * d - 1) < 1e-14) break;
  }
  return scale * fraction;
}

// That counts drawn with these shares (which sum to 1) lie as far from them, by chi-square. Those
// expected fewer than five times are taken together; 0 if something was drawn that cannot be, and
// NaN, which no comparison holds for, if there is nothing to test.
inline double probability_of(const std::vector<int>& counts, const std::vector<double>& shares) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  double statistic = 0, rare_count = 0, rare_expected = 0;
  int bins = 0;
  const auto add = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++bins;
  };
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = shares[i] * total;
    if (expected == 0 && counts[i] > 0) return 0;
    if (expected >= 5)
      add(counts[i], expected);
    else
      rare_count += counts[i], rare_expected += expected;
  }
  if (rare_expected >= 5) add(rare_count, rare_expected);
  if (bins == 0) return std::nan("");
  return bins == 1 ? 1 : upper_gamma((bins - 1) / 2.0, statistic / 2);
}

inline void expect_follows(const std::vector<int>& counts, const std::vector<double>& shares) {
  ASSERT_EQ(counts.size(), shares.size());
  EXPECT_GT(probability_of(counts, shares), 0.001);
}

}  // namespace octavo::testing
