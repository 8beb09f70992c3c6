#include "bench/load_over_time.h"

#include <gtest/gtest.h>

#include "bench/figures.h"

namespace octavo {
namespace {

RunResult run_of(std::vector<RequestRecord> requests) {
  RunResult run;
  run.requests = std::move(requests);
  return run;
}

TEST(LoadOverTime, CountsRequestsInFlight) {
  const RunResult run = run_of({{.arrival_s = 0, .end_s = 4, .finish_reason = "stop"},
                                {.arrival_s = 1, .end_s = 2, .finish_reason = "stop"},
                                {.arrival_s = 2, .end_s = 3, .finish_reason = "timeout"}});
  std::vector<double> values;
  for (const LoadPoint& point : in_flight(run)) values.push_back(point.value);
  EXPECT_EQ(values, (std::vector<double>{1, 2, 1, 2, 1, 0}));
  const RunFigures figures = figures_of(run);
  EXPECT_EQ(figures.max_concurrent, 2);
  EXPECT_DOUBLE_EQ(figures.mean_concurrent, 6.0 / 4);
}

TEST(LoadOverTime, CountsTokensOfEachSecond) {
  const RunResult run = run_of({{.arrival_s = 1, .token_s = {1.5, 1.9, 3.5}, .end_s = 3.5},
                                {.arrival_s = 1, .token_s = {1.99}, .end_s = 2}});
  std::vector<double> values;
  for (const LoadPoint& point : tokens_per_second(run)) values.push_back(point.value);
  EXPECT_EQ(values, (std::vector<double>{3, 0, 1}));
  EXPECT_EQ(figures_of(run).max_output_tokens_per_s, 3);
}

TEST(LoadOverTime, SpreadsTheTokensThatAServerCountedOverItsEvents) {
  const RunResult run = run_of({{.token_s = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.1, 1.2},
                                 .reported_tokens = 50,
                                 .end_s = 1.2,
                                 .finish_reason = "stop"}});
  std::vector<double> values;
  for (const LoadPoint& point : tokens_per_second(run)) values.push_back(point.value);
  EXPECT_EQ(values, (std::vector<double>{40, 10}));
  EXPECT_DOUBLE_EQ(figures_of(run).max_output_tokens_per_s, 40);
}

TEST(Figures, OneEventTellsNothingOfTheTimeOfAToken) {
  const RunResult run =
      run_of({{.token_s = {1}, .reported_tokens = 50, .end_s = 1, .finish_reason = "stop"}});
  EXPECT_EQ(figures_of(run).tpot_s.count, 0);
}

TEST(LoadOverTime, BoundsItsPoints) {
  const RunResult run =
      run_of({{.arrival_s = 0, .token_s = {1e11}, .end_s = 1e12, .finish_reason = "stop"}});
  const auto seconds = tokens_per_second(run);
  EXPECT_LE(seconds.size(), size_t{kMaxSeconds} + 1);
  EXPECT_TRUE(tokens_per_second({}).empty());
  EXPECT_TRUE(in_flight({}).empty());
}

}  // namespace
}  // namespace octavo
