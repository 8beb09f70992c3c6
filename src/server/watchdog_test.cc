#include "server/watchdog.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(Watchdog, CountsTheTimeWithoutABeat) {
  Watchdog watchdog;
  watchdog.look(1000, 7);
  EXPECT_EQ(watchdog.stalled_s(), 0);
  for (int i = 1; i <= 100; ++i) EXPECT_NEAR(watchdog.look(1000 + i / 20.0, 7), 0.05, 1e-9);
  EXPECT_NEAR(watchdog.stalled_s(), 5, 1e-9);
  watchdog.look(1005.05, 8);
  EXPECT_EQ(watchdog.stalled_s(), 0) << "the engine goes on";
}

TEST(Watchdog, TimeInWhichItDidNotRunIsNoStall) {
  Watchdog watchdog;
  watchdog.look(0, 7);
  for (int hour = 1; hour <= 10; ++hour) EXPECT_LE(watchdog.look(3600.0 * hour, 7), 0.25);
  EXPECT_LE(watchdog.stalled_s(), 2.5);
  EXPECT_GT(watchdog.stalled_s(), 0) << "it looked ten times and saw nothing";
}

}  // namespace
}  // namespace octavo
