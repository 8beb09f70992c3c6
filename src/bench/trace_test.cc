#include "bench/trace.h"

#include <gtest/gtest.h>

#include <array>

#include "support/temp_folder.h"

namespace octavo {
namespace {

constexpr TokenRange kTokens = {100, 999};

Trace parse(std::string_view text) {
  auto trace = parse_trace(text, "t.jsonl");
  EXPECT_TRUE(trace) << trace.error().message;
  return trace ? *trace : Trace{};
}

Workload make(std::string_view text, uint64_t seed = 1) {
  auto workload = make_workload(parse(text), seed, kTokens);
  EXPECT_TRUE(workload) << workload.error().message;
  return workload ? *workload : Workload{};
}

std::vector<TokenId> part(const WorkloadRequest& request, long from, long to) {
  return {request.prompt_token_ids.begin() + from, request.prompt_token_ids.begin() + to};
}

TEST(Trace, ReadsOurOwnNames) {
  const Trace trace =
      parse(R"({"arrival_s": 1.5, "prompt_tokens": 700, "output_tokens": 60, "priority": -2,)"
            R"( "prefix_group": "a", "prefix_tokens": 512, "cache_salt": "s"})");
  ASSERT_EQ(trace.size(), 1u);
  EXPECT_EQ(trace[0].arrival_s, 1.5);
  EXPECT_EQ(trace[0].prompt_tokens, 700);
  EXPECT_EQ(trace[0].output_tokens, 60);
  EXPECT_EQ(trace[0].priority, -2);
  EXPECT_EQ(trace[0].prefix_group, "a");
  EXPECT_EQ(trace[0].prefix_tokens, 512);
  EXPECT_EQ(trace[0].salt, "s");
}

TEST(Trace, ReadsMooncakeNames) {
  const Trace trace = parse(
      R"({"timestamp": 2500, "input_length": 1025, "output_length": 52, "hash_ids": [46, 47, 9]})");
  ASSERT_EQ(trace.size(), 1u);
  EXPECT_EQ(trace[0].arrival_s, 2.5);
  EXPECT_EQ(trace[0].prompt_tokens, 1025);
  EXPECT_EQ(trace[0].output_tokens, 52);
  EXPECT_EQ(trace[0].hash_ids, (std::vector<int64_t>{46, 47, 9}));
}

TEST(Trace, EmptyLinesAreSkippedAndRequestsSortedByArrival) {
  const Trace trace = parse(
      "\n{\"arrival_s\": 2, \"prompt_tokens\": 1, \"output_tokens\": 1}\r\n"
      "  \n{\"prompt_tokens\": 2, \"output_tokens\": 1}");
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].prompt_tokens, 2);
  EXPECT_EQ(trace[1].prompt_tokens, 1);
}

TEST(Trace, TokenIdsAreUsedAsTheyAre) {
  const Workload workload = make(R"({"prompt_token_ids": [5, 6, 7], "output_tokens": 2})");
  EXPECT_EQ(workload[0].prompt_token_ids, (std::vector{TokenId{5}, TokenId{6}, TokenId{7}}));
  EXPECT_EQ(workload[0].output_tokens, 2);
}

TEST(Trace, PrefixGroupsShareTheirBeginning) {
  const Workload workload =
      make(R"({"prompt_tokens": 20, "output_tokens": 1, "prefix_group": "a", "prefix_tokens": 10}
{"prompt_tokens": 30, "output_tokens": 1, "prefix_group": "a", "prefix_tokens": 10}
{"prompt_tokens": 20, "output_tokens": 1, "prefix_group": 7, "prefix_tokens": 10}
{"prompt_tokens": 20, "output_tokens": 1})");
  EXPECT_EQ(part(workload[0], 0, 10), part(workload[1], 0, 10));
  EXPECT_NE(part(workload[0], 10, 20), part(workload[1], 10, 20));
  EXPECT_NE(part(workload[0], 0, 10), part(workload[2], 0, 10));
  EXPECT_NE(part(workload[0], 0, 10), part(workload[3], 0, 10));
  EXPECT_EQ(workload[1].prompt_token_ids.size(), 30u);
}

TEST(Trace, EqualHashIdsAreEqualTokens) {
  const Workload workload = make(R"({"input_length": 1000, "output_length": 1, "hash_ids": [1, 2]}
{"input_length": 1500, "output_length": 1, "hash_ids": [1, 2, 3]}
{"input_length": 512, "output_length": 1, "hash_ids": [3]})");
  EXPECT_EQ(part(workload[0], 0, 1000), part(workload[1], 0, 1000));
  EXPECT_EQ(part(workload[1], 1024, 1500), part(workload[2], 0, 476));
  EXPECT_NE(part(workload[0], 0, 100), part(workload[2], 0, 100));
  EXPECT_EQ(workload[1].prompt_token_ids.size(), 1500u);
}

TEST(Trace, MadeUpTokensDependOnTheSeed) {
  constexpr std::string_view kLine = R"({"prompt_tokens": 20, "output_tokens": 1})";
  EXPECT_EQ(make(kLine, 1)[0].prompt_token_ids, make(kLine, 1)[0].prompt_token_ids);
  EXPECT_NE(make(kLine, 1)[0].prompt_token_ids, make(kLine, 2)[0].prompt_token_ids);
}

struct Refused {
  std::string_view line;
  std::string_view words;
};

TEST(Trace, AnErrorNamesTheLineAndTheField) {
  for (
      const auto& [line, words] : {
          Refused{"x", "not a JSON object"},
          Refused{"[1]", "not a JSON object"},
          Refused{R"({"prompt_tokens": [[[1]]]})", "not a JSON object"},
          Refused{R"({"prompt_tokens": 1, "output_tokens": 1)", "not a JSON object"},
          Refused{R"({"output_tokens": 1})", "'prompt_tokens' is missing"},
          Refused{R"({"prompt_tokens": 1})", "'output_tokens' is missing"},
          Refused{R"({"prompt_tokens": 1, "output_tokens": 1, "model": "a"})",
                  "'model' is no field"},
          Refused{R"({"prompt_tokens": 0, "output_tokens": 1})",
                  "'prompt_tokens' is not an integer from 1"},
          Refused{R"({"prompt_tokens": 1.5, "output_tokens": 1})",
                  "'prompt_tokens' is not an integer"},
          Refused{R"({"prompt_tokens": "1", "output_tokens": 1})",
                  "'prompt_tokens' is not an integer"},
          Refused{R"({"prompt_tokens": 1, "output_tokens": 18446744073709551615})",
                  "'output_tokens' is not"},
          Refused{R"({"prompt_tokens": 1, "input_length": 1, "output_tokens": 1})", "say the same"},
          Refused{R"({"arrival_s": -1, "prompt_tokens": 1, "output_tokens": 1})",
                  "'arrival_s' is not a time"},
          Refused{R"({"arrival_s": 1e300, "prompt_tokens": 1, "output_tokens": 1})",
                  "'arrival_s' is not a time"},
          Refused{R"({"prompt_token_ids": [], "output_tokens": 1})",
                  "'prompt_token_ids' is not a list"},
          Refused{R"({"prompt_token_ids": [-1], "output_tokens": 1})",
                  "'prompt_token_ids' is not an integer"},
          Refused{R"({"prompt_token_ids": [2147483648], "output_tokens": 1})",
                  "'prompt_token_ids'"},
          Refused{R"({"prompt_tokens": 1, "output_tokens": 1, "prefix_group": "a"})",
                  "need each other"},
          Refused{R"({"prompt_tokens": 1, "output_tokens": 1, "prefix_tokens": 1})",
                  "need each other"},
          Refused{
              R"({"prompt_tokens": 1, "output_tokens": 1, "prefix_group": "a", "prefix_tokens": 2})",
              "more than the 1"},
          Refused{
              R"({"prompt_tokens": 1, "output_tokens": 1, "prefix_group": [], "prefix_tokens": 1})",
              "'prefix_group' is not"},
          Refused{R"({"prompt_token_ids": [1], "output_tokens": 1, "hash_ids": [1]})",
                  "exclude each other"},
          Refused{R"({"input_length": 513, "output_length": 1, "hash_ids": [1]})",
                  "'hash_ids' has 1 ids"},
          Refused{R"({"input_length": 1, "output_length": 1, "hash_ids": [1, 2]})",
                  "'hash_ids' has 2 ids"},
      }) {
    const std::string text = "{\"prompt_tokens\": 1, \"output_tokens\": 1}\n\n" + std::string(line);
    const auto trace = parse_trace(text, "t.jsonl");
    ASSERT_FALSE(trace) << line;
    EXPECT_EQ(trace.error().code, ErrorCode::corrupt_file) << line;
    EXPECT_TRUE(trace.error().message.starts_with("t.jsonl line 3: ")) << trace.error().message;
    EXPECT_NE(trace.error().message.find(words), std::string::npos) << trace.error().message;
  }
}

TEST(Trace, BoundsAreErrorsOfTheirOwn) {
  const auto long_line = parse_trace(std::string((4 << 20) + 1, 'x'), "t");
  ASSERT_FALSE(long_line);
  EXPECT_EQ(long_line.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(long_line.error().message.find("line 1"), std::string::npos);

  std::string many;
  for (int i = 0; i < 17; ++i) many += "{\"prompt_tokens\": 16777216, \"output_tokens\": 1}\n";
  const auto workload = make_workload(parse(many), 0, kTokens);
  ASSERT_FALSE(workload);
  EXPECT_EQ(workload.error().code, ErrorCode::resource_exhausted);
}

TEST(Trace, WithoutRequestsIsNone) {
  const auto trace = parse_trace("\n \n", "t.jsonl");
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().message, "t.jsonl: has no requests");
}

TEST(Trace, IsReadFromAFile) {
  const testing::TempFolder folder;
  const auto trace =
      read_trace(folder.write("a.jsonl", R"({"prompt_tokens": 3, "output_tokens": 4})"));
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->at(0).prompt_tokens, 3);
  EXPECT_EQ(read_trace(folder.file("none")).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace octavo
