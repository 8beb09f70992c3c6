#include "http/memory_budget.h"

#include <gtest/gtest.h>

namespace octavo::http {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

TEST(MemoryBudget, SharesAreCountedAndGivenBack) {
  const auto budget = std::make_shared<MemoryBudget>(8 * kMiB);
  {
    MemoryBudget::Share share(budget);
    EXPECT_TRUE(share.resize(3 * kMiB));
    EXPECT_FALSE(share.resize(9 * kMiB));
    EXPECT_EQ(budget->used_bytes(), 3 * kMiB);
    EXPECT_TRUE(share.resize(kMiB));
    EXPECT_EQ(budget->used_bytes(), kMiB);
  }
  EXPECT_EQ(budget->used_bytes(), 0u);
}

TEST(MemoryBudget, ALargeShareLeavesRoomToSmallOnes) {
  const auto budget = std::make_shared<MemoryBudget>(8 * kMiB);
  MemoryBudget::Share large(budget), small(budget), other(budget);
  EXPECT_FALSE(large.resize(7 * kMiB + 1));
  EXPECT_TRUE(large.resize(7 * kMiB));
  EXPECT_FALSE(other.resize(kMiB + 1));
  EXPECT_TRUE(small.resize(kMiB));
  EXPECT_FALSE(other.resize(1));
}

}  // namespace
}  // namespace octavo::http
