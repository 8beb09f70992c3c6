#include "bench/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/figures.h"
#include "support/paths.h"

namespace octavo {
namespace {

ComparisonOptions tiny() {
  ComparisonOptions options;
  options.engine.model = testing::test_data("tiny/llama-tied/llama-tied-F32.gguf");
  options.engine.threads = 1;
  options.repeat = 2;
  options.requests = SyntheticSpec{.num_requests = 6,
                                   .prompt = Lengths::fixed(8),
                                   .output = Lengths::fixed(6),
                                   .shared_tokens = 32};
  return options;
}

bool has_note(const BenchResult& result, std::string_view words) {
  return std::ranges::any_of(
      result.notes, [&](const std::string& note) { return note.find(words) != std::string::npos; });
}

TEST(Comparison, RunsAllSettingsInTurnsAndKeepsEveryRound) {
  std::vector<std::string> order;
  ComparisonOptions options = tiny();
  options.on_progress = [&](std::string_view run, int done, int total) {
    EXPECT_EQ(total, 6);
    if (done == 0) order.emplace_back(run);
  };
  const auto result = compare("prefix", options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(order, (std::vector<std::string>{"round 1 of 2, cache off", "round 1 of 2, cache on",
                                             "round 2 of 2, cache on", "round 2 of 2, cache off"}));
  ASSERT_EQ(result->runs.size(), 2u);
  for (const RunResult& run : result->runs) {
    ASSERT_EQ(run.rounds.size(), 2u);
    for (const FigureValues& round : run.rounds) EXPECT_EQ(round.at("completed"), 6);
  }
  EXPECT_TRUE(has_note(*result, "All runs gave the same answers"));
}

TEST(Comparison, NoRoundIsBegunThatWouldEndTooLate) {
  EXPECT_TRUE(has_time_for_another(1, 20));
  EXPECT_FALSE(has_time_for_another(1, 23));
  EXPECT_TRUE(has_time_for_another(4, 36));
  EXPECT_FALSE(has_time_for_another(4, 36.1));
}

TEST(Comparison, OfTheKvCacheIsASweepOfContexts) {
  ComparisonOptions options = tiny();
  options.requests.reset();
  options.contexts = {4, 40};
  const auto result = compare("kv-cache", options);
  ASSERT_TRUE(result) << result.error().message;
  std::vector<std::pair<double, std::string>> runs;
  for (const RunResult& run : result->runs) {
    runs.emplace_back(*run.x, run.series);
    EXPECT_EQ(run.requests[0].prompt_tokens, *run.x);
    EXPECT_EQ(run.settings.at("kv_cache"), run.series == "with cache" ? "on" : "off");
    EXPECT_TRUE(run.rounds[0].contains("median_tpot_ms"));
  }
  EXPECT_EQ(runs, (std::vector<std::pair<double, std::string>>{
                      {4, "without"}, {4, "with cache"}, {40, "without"}, {40, "with cache"}}));
  EXPECT_TRUE(has_note(*result, "All runs gave the same answers"));
  options.contexts = {4, 100000};
  const auto too_long = compare("kv-cache", options);
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::context_overflow);
}

TEST(Comparison, ThroughputIsARunForEachNumberOfRequestsAtOnce) {
  ComparisonOptions options = tiny();
  options.max_concurrency = {1, 2, 4};
  const auto result = compare(kThroughput, options);
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->runs.size(), 3u);
  EXPECT_EQ(result->x_label, "requests at once");
  for (const RunResult& run : result->runs)
    EXPECT_LE(figures_of(run).max_concurrent, static_cast<int>(*run.x)) << *run.x;
  EXPECT_EQ(figures_of(result->runs[0]).max_concurrent, 1);
}

TEST(Comparison, PoliciesAreComparedOnRequestsOfDifferentPriorities) {
  ComparisonOptions options = tiny();
  options.repeat = 1;
  const auto result = compare("scheduling-policy", options);
  ASSERT_TRUE(result) << result.error().message;
  for (const RunResult& run : result->runs) EXPECT_TRUE(figures_of(run).urgent_ttft_s) << run.name;
  EXPECT_TRUE(has_note(*result, "one of 2 priorities"));
  options.requests->priorities = 1;
  EXPECT_FALSE(figures_of(compare("scheduling-policy", options)->runs[0]).urgent_ttft_s);
}

TEST(Comparison, OfChunksEndsWithTheLongPrompt) {
  ComparisonOptions options = tiny();
  options.repeat = 1;
  options.requests = SyntheticSpec{.num_requests = 3,
                                   .prompt = Lengths::fixed(4),
                                   .output = Lengths::fixed(180),
                                   .intruder = LongPrompt{60, 0}};
  auto result = compare("chunking", options);
  // A machine that stands still for a while may let the streams end before the prompt comes.
  const auto came_too_late = [&] {
    return !result && result.error().message.find("in every run") != std::string::npos;
  };
  for (int more = 5; came_too_late() && more > 0; --more) result = compare("chunking", options);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_TRUE(has_note(*result, "3 streams are being written when a prompt of 60 tokens"));
  for (const RunResult& run : result->runs) {
    EXPECT_EQ(run.long_request, 3);
    EXPECT_EQ(run.requests[3].prompt_tokens, 60);
    for (const RequestRecord& request : run.requests) EXPECT_TRUE(request.completed());
    // The streams were being written when it came.
    for (size_t i = 0; i < 3; ++i)
      EXPECT_LE(run.requests[i].token_s[15], run.requests[3].arrival_s);
  }
  options.requests->output = Lengths::fixed(2);
  EXPECT_EQ(compare("chunking", options).error().code, ErrorCode::invalid_argument);
}

TEST(Comparison, AnUnknownSubjectIsRefused) {
  EXPECT_EQ(compare("speed", tiny()).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace octavo
