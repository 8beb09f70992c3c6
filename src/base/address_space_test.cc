#include "base/address_space.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace octavo {
namespace {

TEST(AddressSpace, IsWhatTheLimitLeaves) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "there is a limit already";
  EXPECT_EQ(free_address_space_bytes(), std::nullopt);
  constexpr rlim_t kMost = rlim_t{1} << 50;  // more than sanitizers map
  rlimit limit = before;
  limit.rlim_cur = kMost;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  const auto room = free_address_space_bytes();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_TRUE(room);
  EXPECT_LT(*room, static_cast<int64_t>(kMost));
  EXPECT_GT(*room, 0);
}

}  // namespace
}  // namespace octavo
