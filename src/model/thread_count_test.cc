#include "model/thread_count.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(ThreadsFor, Table) {
  struct Case {
    const char* what;
    StepCost cost;
    int most, expected;
  };
  const Case cases[] = {
      {"nothing to do", {0, 0, 0}, 8, 1},
      {"one core", {int64_t{1} << 30, int64_t{1} << 30, 150}, 1, 1},
      {"tiny model, one token: 7 us of reading, 10 barriers", {100'000, 200'000, 10}, 2, 1},
      {"tiny model, chunk of 512 tokens", {100'000, 100'000'000, 20}, 2, 2},
      {"135M, one token", {98'000'000, 134'000'000, 152}, 2, 2},
      {"135M, one token, many cores: barriers eat the gain",
       {98'000'000, 134'000'000, 152},
       64,
       21},
      {"135M, 512 tokens, many cores", {98'000'000, int64_t{512} * 106'000'000, 300}, 64, 64},
      {"1B, one token", {700'000'000, 1'100'000'000, 90}, 16, 16},
  };
  for (const Case& c : cases) EXPECT_EQ(threads_for(c.cost, c.most), c.expected) << c.what;
}

}  // namespace
}  // namespace octavo
