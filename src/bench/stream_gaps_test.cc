#include "bench/stream_gaps.h"

#include <gtest/gtest.h>

#include "bench/figures.h"

namespace octavo {
namespace {

// Two streams of a token a second, and a prompt that comes at 3 and has its first token at 6; a
// stream stands still from 3.5 to 5.5.
RunResult small_run() {
  RunResult run;
  run.requests = {
      {.token_s = {1, 2, 3, 5.5, 6.5}, .end_s = 7, .finish_reason = "stop"},
      {.token_s = {1, 2, 2.9, 5.9, 6.4}, .end_s = 7, .finish_reason = "stop"},
      {.arrival_s = 3, .token_s = {6}, .end_s = 6, .prompt_tokens = 99, .finish_reason = "length"}};
  run.long_request = 2;
  return run;
}

TEST(StreamGaps, AreThoseUntilTheFirstTokenOfTheLongPrompt) {
  const auto gaps = gaps_of(small_run());
  ASSERT_TRUE(gaps);
  EXPECT_DOUBLE_EQ(gaps->median_gap_s, 1);
  EXPECT_DOUBLE_EQ(gaps->largest_gap_s, 3);
  EXPECT_DOUBLE_EQ(gaps->ttft_s, 3);
}

TEST(StreamGaps, AreFiguresOfTheRun) {
  const FigureValues values = figure_values(small_run());
  EXPECT_DOUBLE_EQ(values.at("max_gap_ms"), 3000);
  EXPECT_DOUBLE_EQ(values.at("long_ttft_ms"), 3000);
  RunResult without = small_run();
  without.long_request.reset();
  EXPECT_FALSE(figure_values(without).contains("max_gap_ms"));
}

TEST(StreamGaps, AreNoneWhereAStreamEndedBefore) {
  RunResult run = small_run();
  run.requests[0].end_s = 5.5;
  run.requests[0].token_s.resize(4);
  EXPECT_FALSE(gaps_of(run));
  run = small_run();
  run.requests[2].token_s.clear();
  EXPECT_FALSE(gaps_of(run));
}

}  // namespace
}  // namespace octavo
