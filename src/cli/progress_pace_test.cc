#include "cli/progress_pace.h"

#include <gtest/gtest.h>

namespace octavo::cli {
namespace {

// Lines that are due in so many seconds of work that begins at 1000, asked each tenth of a second.
int lines_in(int seconds) {
  ProgressPace pace(1000);
  int lines = 0;
  for (int tenth = 0; tenth <= 10 * seconds; ++tenth) lines += pace.is_due(1000 + tenth / 10.0);
  return lines;
}

TEST(ProgressPace, SaysNothingOfShortWorkAndLittleOfLong) {
  EXPECT_EQ(lines_in(9), 0);
  EXPECT_EQ(lines_in(11), 1);
  EXPECT_EQ(lines_in(101), 10);
  EXPECT_LE(lines_in(3600), 60);
  EXPECT_LE(lines_in(24 * 3600), 100);
}

TEST(ProgressPace, ALateQuestionGetsOneLine) {
  ProgressPace pace(0);
  EXPECT_TRUE(pace.is_due(500));
  EXPECT_FALSE(pace.is_due(540));
  EXPECT_TRUE(pace.is_due(551));
}

}  // namespace
}  // namespace octavo::cli
