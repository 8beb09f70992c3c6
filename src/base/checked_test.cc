#include "base/checked.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

TEST(Checked, Add) {
  EXPECT_EQ(checked_add(2, 3), 5u);
  EXPECT_EQ(checked_add(kMax, 0), kMax);
  EXPECT_EQ(checked_add(0, kMax), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add(kMax, kMax), std::nullopt);
}

TEST(Checked, Mul) {
  EXPECT_EQ(checked_mul(6, 7), 42u);
  EXPECT_EQ(checked_mul(0, kMax), 0u);
  EXPECT_EQ(checked_mul(kMax, 0), 0u);
  EXPECT_EQ(checked_mul(kMax, 1), kMax);
  EXPECT_EQ(checked_mul(uint64_t{1} << 32, uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(uint64_t{1} << 62, 5), std::nullopt) << "wraps to 2^62";
  static_assert(checked_mul(3, 5) == 15u);
}

TEST(Checked, AlignUp) {
  EXPECT_EQ(checked_align_up(0, 32), 0u);
  EXPECT_EQ(checked_align_up(1, 32), 32u);
  EXPECT_EQ(checked_align_up(32, 32), 32u);
  EXPECT_EQ(checked_align_up(33, 1), 33u);
  EXPECT_EQ(checked_align_up(kMax - 30, 32), std::nullopt);
  EXPECT_EQ(checked_align_up(kMax - 31, 32), kMax - 31);
}

TEST(Checked, RangeFits) {
  EXPECT_TRUE(range_fits(0, 0, 0));
  EXPECT_TRUE(range_fits(4, 6, 10));
  EXPECT_FALSE(range_fits(4, 7, 10));
  EXPECT_FALSE(range_fits(11, 0, 10));
  EXPECT_FALSE(range_fits(kMax, 2, 10)) << "the sum wraps to 1";
  EXPECT_FALSE(range_fits(2, kMax, 10));
}

}  // namespace
}  // namespace octavo
