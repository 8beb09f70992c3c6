#include "base/rng.h"

#include <gtest/gtest.h>

#include <set>

namespace octavo {
namespace {

// The three vectors for "philox4x32 10" in the kat_vectors file of Random123.
TEST(Philox, EqualsRandom123) {
  struct Case {
    PhiloxCounter counter;
    PhiloxKey key;
    PhiloxCounter expected;
  };
  const Case cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Case& c : cases) EXPECT_EQ(philox4x32(c.counter, c.key), c.expected);
}

TEST(Uniform, IsTheTop53BitsOfTheBlock) {
  EXPECT_EQ(uniform(0, 0, 0), static_cast<double>(0x6627e8d5e169c58d >> 11) / 0x1p53);
}

TEST(Uniform, EveryPartOfTheKeyCounts) {
  const uint64_t one_high = uint64_t{1} << 32;
  const std::set<double> draws = {
      uniform(1, 2, 3),       uniform(2, 2, 3), uniform(1 + one_high, 2, 3),
      uniform(1, 3, 3),       uniform(1, 2, 4), uniform(1, 2, 3 + one_high),
      uniform(1, 1u << 31, 3)};
  EXPECT_EQ(draws.size(), 7u);
  std::set<double> uses;
  for (const RandomUse use :
       {RandomUse::draw, RandomUse::guess, RandomUse::keep, RandomUse::otherwise})
    for (const uint32_t index : {0u, 1u, 2u}) uses.insert(uniform(1, 2, 3, use, index));
  EXPECT_EQ(uses.size(), 12u);
  EXPECT_EQ(uniform(1, 2, 3, RandomUse::draw, 0), uniform(1, 2, 3));
  EXPECT_EQ(uniform(1, 2, 3), uniform(1, 2, 3));
}

TEST(Uniform, FillsTheUnitIntervalEvenly) {
  constexpr int kDraws = 64'000, kBins = 64;
  int counts[kBins] = {};
  for (int position = 0; position < kDraws; ++position) {
    const double u = uniform(7, 0, position);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++counts[static_cast<int>(u * kBins)];
  }
  double chi_square = 0;
  for (int count : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 114.8);  // 63 degrees of freedom, p = 1e-4
}

TEST(FreshSeed, DiffersAndFitsADouble) {
  std::set<uint64_t> seeds;
  for (int i = 0; i < 100; ++i) seeds.insert(fresh_seed());
  EXPECT_EQ(seeds.size(), 100u);
  EXPECT_LT(*seeds.rbegin(), uint64_t{1} << 53);
}

}  // namespace
}  // namespace octavo
