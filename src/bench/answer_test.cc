#include "bench/answer.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// A run of so many tokens in one second, in each round.
RunResult run_of(std::string name, const std::vector<double>& tokens_per_s) {
  RunResult run{.name = std::move(name)};
  run.requests = {{.token_s = {1}, .end_s = 1, .finish_reason = "stop"}};
  for (const double each : tokens_per_s) run.rounds.push_back({{"output_throughput", each}});
  return run;
}

BenchResult result_of(std::vector<RunResult> runs) {
  return {.title = "t", .headline = {"output_throughput"}, .runs = std::move(runs)};
}

using Sentences = std::vector<std::string>;

TEST(Answer, OfTwoRunsIsTheirRatioWithItsSpread) {
  EXPECT_EQ(answers(result_of({run_of("static", {100, 100, 110}), run_of("new", {310, 300, 340})})),
            Sentences{"Output tokens per second: 310 with new, 100 with static: 3.09 x (ratio 3 to "
                      "3.1 in 3 rounds)."});
}

TEST(Answer, SaysThatThereIsNoDifference) {
  EXPECT_EQ(
      answers(result_of({run_of("a", {100, 119, 95}), run_of("b", {119, 100, 96})})),
      Sentences{"Output tokens per second: 100 with b, 100 with a: no difference beyond noise "
                "(ratio 0.84 to 1.19 in 3 rounds)."});
}

TEST(Answer, OfManyIsTheBestAndWhatCannotBeToldFromIt) {
  const auto result = result_of(
      {run_of("16", {50, 51, 50}), run_of("32", {100, 101, 102}), run_of("64", {101, 100, 99})});
  EXPECT_EQ(answers(result),
            Sentences{"Output tokens per second: best with 32, 101; 50 with 16: 2 x (ratio 1.98 to "
                      "2.04 in 3 rounds); no difference beyond noise from it: 64."});
}

TEST(Answer, ThatNoneStandsOutIsSaid) {
  const auto result = result_of(
      {run_of("a", {100, 110, 90}), run_of("b", {101, 99, 103}), run_of("c", {99, 104, 98})});
  EXPECT_EQ(
      answers(result),
      Sentences{"Output tokens per second: best with b, 101; 100 with a: no difference beyond "
                "noise (ratio 0.9 to 1.14 in 3 rounds); no other differs from it beyond "
                "noise."});
}

TEST(Answer, OfOneRunIsItsFigureWithItsSpread) {
  EXPECT_EQ(answers(result_of({run_of("a", {100, 110, 90})})),
            Sentences{"Output tokens per second: 100 (90 to 110 in 3 rounds)."});
  EXPECT_EQ(answers(result_of({run_of("a", {})})), Sentences{"Output tokens per second: 1."});
}

TEST(Answer, OfTwoLinesIsTheirRatioAtBothEnds) {
  BenchResult result;
  result.headline = {"output_throughput"};
  result.x_label = "tokens of context";
  for (const double x : {64, 1024})
    for (const bool with : {false, true}) {
      RunResult& run = result.runs.emplace_back(run_of("r", std::vector<double>(3, with ? x : 16)));
      run.x = x;
      run.series = with ? "with" : "without";
      run.group = std::to_string(x);
    }
  EXPECT_EQ(answers(result),
            (Sentences{"Output tokens per second at 1024 tokens of context: 1024 with, 16 without: "
                       "64 x (ratio 64 to 64 in 3 rounds).",
                       "Output tokens per second at 64 tokens of context: 64 with, 16 without: 4 x "
                       "(ratio 4 to 4 in 3 rounds)."}));
}

TEST(Answer, OfNothingIsNone) {
  EXPECT_TRUE(answers(BenchResult()).empty());
  EXPECT_TRUE(answers(result_of({RunResult()})).size() <= 1);
}

}  // namespace
}  // namespace octavo
