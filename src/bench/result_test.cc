#include "bench/result.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "bench/compare_runs.h"
#include "bench/figures.h"
#include "bench/result_json.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

// Two requests of four that complete: 2 + 3 tokens in 4 s.
RunResult small_run() {
  RunResult run{.name = "paged"};
  run.settings = {{"block_size", "16"}};
  run.block_size = 16;
  run.num_blocks = 4;
  run.requests = {
      {.arrival_s = 0,
       .scheduled_s = .5,
       .token_s = {1, 2},
       .end_s = 2,
       .prompt_tokens = 10,
       .cached_tokens = 4,
       .preemptions = 1,
       .finish_reason = "length"},
      {.arrival_s = 1,
       .scheduled_s = 1,
       .token_s = {2, 2.5, 4},
       .end_s = 4,
       .prompt_tokens = 20,
       .cached_tokens = 8,
       .finish_reason = "stop"},
      {.arrival_s = 1,
       .scheduled_s = 1,
       .token_s = {3},
       .end_s = 3,
       .prompt_tokens = 6,
       .finish_reason = "abort"},
      {.arrival_s = 1, .end_s = 3, .prompt_tokens = 12, .finish_reason = "error"},
  };
  run.steps = {
      {.time_s = 0,
       .step_s = 3,
       .scheduling_s = .03,
       .running = 1,
       .waiting = 1,
       .prefill_tokens = 30,
       .blocks_held = 2,
       .blocks_free = 2,
       .waste_tokens = 4},
      {.time_s = 3,
       .step_s = 1,
       .scheduling_s = .01,
       .running = 3,
       .decode_tokens = 6,
       .padding_tokens = 4,
       .blocks_held = 4,
       .waste_tokens = 8},
  };
  run.block_map = {{.time_s = 0, .blocks = {{0, 100}, {0, 50}, {}, {BlockCell::kCached, 100}}},
                   {.time_s = 3, .blocks = {{0, 100}, {1, 0}, {BlockCell::kShared, 100}, {}}}};
  return run;
}

BenchResult small_result() {
  BenchResult result{.title = "A \"title\"", .model = "m", .machine = "2 cores", .command = "c"};
  result.settings = {{"isa", "avx2"}};
  result.notes = {"One.", "Two."};
  result.cost_per_hour = 3.6;
  result.runs = {small_run(), small_run()};
  result.runs[1].name = "half";
  for (RequestRecord& request : result.runs[1].requests) {
    for (double& time : request.token_s) time /= 2;
    request.scheduled_s.reset();
    request.arrival_s /= 2;
    request.end_s /= 2;
  }
  return result;
}

TEST(Figures, LatenciesAreThoseOfCompletedRequests) {
  const RunFigures figures = figures_of(small_run());
  EXPECT_EQ(figures.completed, 2);
  EXPECT_EQ(figures.failed, 2);
  EXPECT_EQ(figures.total_input_tokens, 30);
  EXPECT_EQ(figures.total_output_tokens, 5);
  EXPECT_DOUBLE_EQ(figures.duration_s, 4);
  EXPECT_DOUBLE_EQ(figures.request_throughput, .5);
  EXPECT_DOUBLE_EQ(figures.output_throughput, 1.25);
  EXPECT_DOUBLE_EQ(figures.total_token_throughput, 8.75);
  EXPECT_EQ(figures.queue_s, summarize({.5, 0}));
  EXPECT_EQ(figures.ttft_s, summarize({1, 1}));
  EXPECT_EQ(figures.tpot_s, summarize({1, 1}));
  EXPECT_EQ(figures.itl_s, summarize({1, .5, 1.5}));
  EXPECT_EQ(figures.e2el_s, summarize({2, 3}));
}

TEST(Figures, StepsWeighAsMuchAsTheyTook) {
  const RunFigures figures = figures_of(small_run());
  EXPECT_DOUBLE_EQ(*figures.running_mean, 1.5);
  EXPECT_EQ(figures.running_max, 3);
  EXPECT_DOUBLE_EQ(*figures.blocks_used_mean, 2.5);
  EXPECT_EQ(figures.blocks_used_max, 4);
  EXPECT_DOUBLE_EQ(*figures.kv_waste_share, 5 / (2.5 * 16));
  EXPECT_DOUBLE_EQ(*figures.padding_share, .1);
  EXPECT_DOUBLE_EQ(*figures.scheduling_share, .01);
  EXPECT_DOUBLE_EQ(*figures.prefix_hit_rate, 12.0 / 48);
  EXPECT_EQ(figures.preemptions, 1);
}

TEST(Figures, CostsFollowFromTheDuration) {
  EXPECT_FALSE(figures_of(small_run()).cost_per_million_tokens);
  const RunFigures figures = figures_of(small_run(), 3.6);  // 0.004 in 4 s
  EXPECT_DOUBLE_EQ(*figures.cost_per_million_output_tokens, 800);
  EXPECT_DOUBLE_EQ(*figures.cost_per_million_tokens, .004 / 35 * 1e6);
}

TEST(Figures, NothingMeasuredIsNoFigure) {
  const RunFigures figures = figures_of(RunResult{.name = "empty"}, 1);
  EXPECT_EQ(figures.duration_s, 0);
  EXPECT_EQ(figures.output_throughput, 0);
  EXPECT_EQ(figures.ttft_s.count, 0);
  EXPECT_FALSE(figures.blocks_used_mean);
  EXPECT_FALSE(figures.kv_waste_share);
  EXPECT_FALSE(figures.prefix_hit_rate);
  EXPECT_FALSE(figures.cost_per_million_tokens);
}

TEST(Figures, AreNamedAsInVllm) {
  const auto json = figures_json(small_run());
  for (const char* name : {"completed",          "failed",
                           "total_input_tokens", "total_output_tokens",
                           "duration",           "request_throughput",
                           "output_throughput",  "total_token_throughput",
                           "rejected",           "max_output_tokens_per_s",
                           "p50_e2el_ms",        "max_concurrent_requests",
                           "mean_ttft_ms",       "median_ttft_ms",
                           "std_ttft_ms",        "p99_ttft_ms",
                           "mean_tpot_ms",       "median_tpot_ms",
                           "std_tpot_ms",        "p99_tpot_ms",
                           "mean_itl_ms",        "median_itl_ms",
                           "std_itl_ms",         "p99_itl_ms",
                           "mean_e2el_ms",       "median_e2el_ms",
                           "std_e2el_ms",        "p99_e2el_ms"})
    EXPECT_TRUE(json.contains(name) && json[name].is_number()) << name;
  EXPECT_DOUBLE_EQ(json["mean_ttft_ms"].get<double>(), 1000);
  EXPECT_TRUE(json["cost_per_million_tokens"].is_null());
}

TEST(Figures, RatiosAreToTheFirstRun) {
  std::map<std::string, ComparisonRow> rows;
  for (const ComparisonRow& row : compare_runs(small_result())) rows[row.figure.name] = row;
  EXPECT_EQ(rows["output_throughput"].values, (std::vector<std::optional<double>>{1.25, 2.5}));
  EXPECT_EQ(rows["output_throughput"].changes[1]->ratio, 2);
  EXPECT_EQ(rows["output_throughput"].changes[0]->ratio, 1);
  EXPECT_EQ(rows["p95_ttft_ms"].changes[1]->ratio, .5);
  EXPECT_EQ(rows["p95_ttft_ms"].changes[1]->call, Call::unknown);
  EXPECT_FALSE(rows["p95_queue_ms"].changes[1]);
  EXPECT_FALSE(rows.contains("std_ttft_ms"));  // of JSON only
}

TEST(Figures, OfSeveralRoundsAreMediansAndRatiosAreWithinARound) {
  BenchResult result = small_result();
  const auto rounds = [](std::vector<double> values) {
    std::vector<FigureValues> out;
    for (const double value : values) out.push_back({{"output_throughput", value}});
    return out;
  };
  // The machine halves its speed meanwhile.
  result.runs[0].rounds = rounds({10, 5, 4});
  result.runs[1].rounds = rounds({20, 10, 8.1});
  const auto rows = compare_runs(result);
  const ComparisonRow* row = find_row(rows, "output_throughput");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->values, (std::vector<std::optional<double>>{5, 10}));
  EXPECT_DOUBLE_EQ(row->changes[1]->ratio, 2);
  EXPECT_DOUBLE_EQ(row->changes[1]->high, 2.025);
  EXPECT_EQ(row->changes[1]->call, Call::differs);
}

TEST(Figures, OfMergedRoundsTheMiddleOneIsShown) {
  std::vector<RunResult> rounds(3, small_run());
  for (size_t i = 0; i < 3; ++i)
    for (RequestRecord& request : rounds[i].requests) request.end_s += static_cast<double>(2 * i);
  const RunResult merged = merge_rounds(rounds);
  EXPECT_EQ(merged.requests, rounds[1].requests);
  ASSERT_EQ(merged.rounds.size(), 3u);
  EXPECT_DOUBLE_EQ(merged.rounds[2].at("output_throughput"), 5.0 / 8);
}

TEST(Figures, OfTwoLinesEachIsBesideItsNeighbour) {
  BenchResult result;
  for (const auto& [series, x] :
       {std::pair("without", 1), {"without", 2}, {"with", 1}, {"with", 2}})
    result.runs.push_back({.name = series, .x = x, .series = series, .group = std::to_string(x)});
  EXPECT_EQ(baseline_of(result, 1), 1u);
  EXPECT_EQ(baseline_of(result, 2), 0u);
  EXPECT_EQ(baseline_of(result, 3), 1u);
  for (RunResult& run : result.runs) run.group.clear();
  EXPECT_EQ(baseline_of(result, 3), 0u);
}

TEST(Figures, PrioritiesShowInWhatTheMostUrgentWaited) {
  RunResult run = small_run();
  EXPECT_FALSE(figures_of(run).urgent_ttft_s);
  run.requests[1].priority = 1;
  EXPECT_EQ(figures_of(run).urgent_ttft_s, summarize({1}));
  run.requests[0].priority = 2;
  EXPECT_FALSE(figures_of(run).urgent_ttft_s);  // none of priority 0 was completed
}

TEST(Figures, FiguresThatNobodyHasAreNoRow) {
  BenchResult result = small_result();
  result.cost_per_hour.reset();
  for (const ComparisonRow& row : compare_runs(result))
    EXPECT_FALSE(row.figure.name.starts_with("cost")) << row.figure.name;
}

TEST(Figures, ThatNoRequestWasGoodIsSaid) {
  BenchResult result;
  result.runs.resize(1);
  result.runs[0].requests = {{.token_s = {1, 2}, .end_s = 2, .finish_reason = "stop"}};
  const auto shows = [&](std::string_view name) {
    const auto rows = compare_runs(result);
    return std::ranges::any_of(rows, [&](auto& row) { return row.figure.name == name; });
  };
  EXPECT_FALSE(shows("request_goodput"));
  result.runs[0].goodput_ms = {{"ttft", 1}};
  EXPECT_TRUE(shows("request_goodput"));
  EXPECT_FALSE(shows("failed"));
  result.runs[0].requests[0].finish_reason = "status 500";
  EXPECT_TRUE(shows("completed"));
}

TEST(Figures, WhatAServerSaysWeighsAsLongAsItStood) {
  RunResult run;
  run.server = {{.time_s = 0, .kv_usage = 0},
                {.time_s = 1, .kv_usage = 0},
                {.time_s = 1.5},
                {.time_s = 2, .kv_usage = 1},
                {.time_s = 10, .kv_usage = 1}};
  EXPECT_DOUBLE_EQ(figures_of(run).server_kv_usage->mean, 0.85);
  EXPECT_DOUBLE_EQ(figures_of(run).server_kv_usage->max, 1);
  run.server.resize(1);
  EXPECT_DOUBLE_EQ(figures_of(run).server_kv_usage->mean, 0);
}

TEST(Figures, AreShownShortly) {
  EXPECT_EQ(format_value(1234.6, ""), "1235");
  EXPECT_EQ(format_value(12.3456, "ms"), "12.35");
  EXPECT_EQ(format_value(.0312, "share"), "3.12 %");
  EXPECT_EQ(format_value(std::nullopt, "ms"), "-");
  EXPECT_EQ(format_ratio(2.3123), "2.31 x");
  EXPECT_EQ(format_ratio(123.4), "123 x");
  EXPECT_EQ(format_ratio(std::nullopt), "-");
}

TEST(ResultFile, IsReadAsItWasWritten) {
  const testing::TempFolder folder;
  const std::string text = to_json(small_result()).dump();
  const auto read = read_result(folder.write("a.json", text));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, small_result());
}

BenchResult served_result() {
  BenchResult result = small_result();
  RunResult& run = result.runs[0];
  run.requests[0].reported_tokens = 7;
  run.requests[3].finish_reason = "status 429";
  run.server = {{.time_s = 0, .running = 2, .kv_usage = .25},
                {.time_s = 1, .memory_mib = 512.5, .cpu_cores = 1.5}};
  run.goodput_ms = {{"ttft", 500}, {"tpot", 50}};
  run.x = 8;
  run.series = "with";
  run.group = "g";
  run.long_request = 3;
  run.rounds = {{{"output_throughput", 1.25}}, {{"output_throughput", 1.5}, {"p95_ttft_ms", 7}}};
  run.requests[2].priority = -3;
  result.x_label = "requests at once";
  result.headline = {"output_throughput"};
  return result;
}

TEST(ResultFile, KeepsWhatIsKnownOfAServer) {
  const auto json = to_json(served_result());
  EXPECT_EQ(json["runs"][0]["failures"].dump(), R"({"abort":1,"status 429":1})");
  EXPECT_EQ(json["runs"][0]["server"]["kv_usage"].dump(), "[0.25,null]");
  EXPECT_FALSE(json["runs"][1].contains("server"));
  auto read = parse_result(json.dump(), "r");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, served_result());
}

TEST(ResultFile, RefusesAServerOfUnequalColumns) {
  auto json = to_json(served_result());
  json["runs"][0]["server"]["running"].push_back(1);
  const auto read = parse_result(json.dump(), "r");
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("runs[0].server.running"), std::string::npos)
      << read.error().message;
}

TEST(ResultFile, TimesAreRoundedToMicroseconds) {
  BenchResult result = small_result();
  result.runs[0].requests[0].token_s = {1.00000049, 1.2345678};
  const auto read = parse_result(to_json(result).dump(), "a.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->runs[0].requests[0].token_s, (std::vector<double>{1, 1.234568}));
}

struct Refused {
  std::string_view pointer;  // what is changed
  nlohmann::ordered_json value;
  std::string_view words;
};

TEST(ResultFile, AnErrorNamesTheField) {
  for (const auto& [pointer, value, words] : {
           Refused{"/title", 5, "'title' is not a string"},
           Refused{"/cost_per_hour", -1, "'cost_per_hour'"},
           Refused{"/frobs", 1, "unknown field 'frobs'"},
           Refused{"/settings", {1}, "'settings' is not an object"},
           Refused{"/settings/isa", 1, "'settings' is not a string"},
           Refused{"/notes/1", 1, "'notes[1]' is not a string"},
           Refused{"/runs", "x", "'runs' is not a list"},
           Refused{"/runs/1", 5, "'runs[1].name' is not a string"},
           Refused{"/runs/1/block_size", -1, "'runs[1].block_size' is not an integer"},
           Refused{"/runs/1/num_blocks", 5, "'runs[1].block_map[0].owners'"},
           Refused{"/runs/0/requests/2/arrival_s", "0", "'runs[0].requests[2].arrival_s'"},
           Refused{"/runs/0/requests/1/token_s/1", 1e13, "'runs[0].requests[1].token_s[1]'"},
           Refused{"/runs/0/requests/1/token_s/1", 5, "goes back in time"},
           Refused{"/runs/0/requests/1/end_s", 3, "before the last token"},
           Refused{"/runs/0/requests/1/scheduled_s", .5, "before the arrival"},
           Refused{"/runs/0/requests/1/cached_tokens", 21, "more than the prompt"},
           Refused{"/runs/0/requests/1/prompt_tokens", 2147483648,
                   "'runs[0].requests[1].prompt_tokens'"},
           Refused{"/runs/0/requests/1/more", 1, "unknown field 'more'"},
           Refused{"/runs/0/steps", nullptr, "'runs[0].steps' is missing"},
           Refused{"/runs/0/steps/running", {1}, "'runs[0].steps.running' has 1 values"},
           Refused{"/runs/0/steps/step_s/0", -1, "'runs[0].steps.step_s[0]'"},
           Refused{"/runs/0/steps/waste_tokens/0", 18446744073709551615u, "waste_tokens[0]'"},
           Refused{"/runs/0/x", "a", "'runs[0].x'"},
           Refused{"/runs/0/rounds", {1}, "'runs[0].rounds[0]' is not an object"},
           Refused{"/runs/0/rounds", {{{"a", "b"}}}, "'runs[0].rounds[0].a'"},
           Refused{"/runs/0/long_request", 4, "'runs[0].long_request' is no request"},
           Refused{"/runs/0/requests/2/priority", .5, "'runs[0].requests[2].priority'"},
           Refused{"/headline", 1, "'headline' is not a list"},
           Refused{"/runs/0/block_map/1/owners/2", -4, "'runs[0].block_map[1].owners[2]'"},
           Refused{"/runs/0/block_map/1/owners/2", 18446744073709551615u, "owners[2]'"},
           Refused{"/runs/0/block_map/1/filled_percent/2", 101, "filled_percent[2]'"},
       }) {
    auto json = to_json(small_result());
    json[nlohmann::ordered_json::json_pointer(std::string(pointer))] = value;
    const auto read = parse_result(json.dump(), "a.json");
    ASSERT_FALSE(read) << pointer;
    EXPECT_EQ(read.error().code, ErrorCode::corrupt_file) << pointer;
    EXPECT_TRUE(read.error().message.starts_with("a.json: ")) << read.error().message;
    EXPECT_NE(read.error().message.find(words), std::string::npos) << read.error().message;
  }
}

TEST(ResultFile, RefusesWhatIsNoResult) {
  EXPECT_EQ(parse_result("", "a").error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(parse_result("[]", "a").error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(parse_result("{}", "a").error().code, ErrorCode::corrupt_file);
  EXPECT_EQ(parse_result(std::string(100000, '['), "a").error().code, ErrorCode::corrupt_file);
  auto json = to_json(small_result());
  json["schema"] = "octavo-bench-2";
  const auto read = parse_result(json.dump(), "a");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::unsupported);
  EXPECT_NE(read.error().message.find("octavo-bench-1"), std::string::npos);
}

}  // namespace
}  // namespace octavo
