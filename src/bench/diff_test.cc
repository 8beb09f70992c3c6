#include "bench/diff.h"

#include <gtest/gtest.h>

#include "bench/compare_runs.h"
#include "bench/figures.h"

namespace octavo {
namespace {

RunResult run(std::string name, double seconds) {
  RunResult out;
  out.name = std::move(name);
  out.requests = {{.arrival_s = 0,
                   .token_s = {seconds / 2, seconds},
                   .end_s = seconds,
                   .prompt_tokens = 1,
                   .finish_reason = "stop"}};
  return out;
}

BenchResult result(std::vector<RunResult> runs) {
  BenchResult out;
  out.runs = std::move(runs);
  return out;
}

TEST(Diff, PairsSingleRunsWhateverTheirNames) {
  const auto pairs = pair_results(result({run("x", 2)}), "before", result({run("y", 1)}), "after");
  ASSERT_TRUE(pairs);
  ASSERT_EQ(pairs->size(), 1u);
  const BenchResult& pair = (*pairs)[0];
  EXPECT_EQ(pair.runs[0].name, "before");
  EXPECT_EQ(pair.runs[1].name, "after");
  for (const ComparisonRow& row : compare_runs(pair))
    if (row.figure.name == "output_throughput") {
      EXPECT_DOUBLE_EQ(row.changes[1]->ratio, 2);
    }
}

TEST(Diff, PairsRunsByName) {
  const BenchResult a = result({run("x", 2), run("y", 2)}), b = result({run("y", 1), run("x", 4)});
  const auto pairs = pair_results(a, "a", b, "b");
  ASSERT_TRUE(pairs);
  ASSERT_EQ(pairs->size(), 2u);
  EXPECT_EQ((*pairs)[0].title, "x");
  EXPECT_EQ((*pairs)[0].runs[1].requests[0].end_s, 4);
  EXPECT_EQ(pair_results(a, "a", b, "b", "y")->size(), 1u);
  EXPECT_FALSE(pair_results(a, "a", b, "b", "z"));
  EXPECT_FALSE(pair_results(a, "a", result({run("z", 1)}), "b"));
  EXPECT_FALSE(pair_results(result({}), "a", result({}), "b"));
}

TEST(Diff, SaysWhereTheResultsDiffer) {
  BenchResult a = result({run("x", 2)}), b = a;
  EXPECT_TRUE((*pair_results(a, "a", b, "b"))[0].notes.empty());
  a.model = "m";
  b.machine = "big";
  a.machine = "small";
  b.runs[0].settings["dataset"] = "mixed";
  a.runs[0].settings["dataset"] = "random";
  EXPECT_EQ((*pair_results(a, "a", b, "b"))[0].notes.size(), 3u);
}

}  // namespace
}  // namespace octavo
