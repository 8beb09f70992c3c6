#include "bench/trace_sizing.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// A block of 16 tokens takes 2 x 16 x 8 x 2 bytes.
constexpr int64_t kBlockBytes = 512;

SizingRoom room(int64_t blocks) {
  return {
      .shape = {.num_layers = 1, .num_heads = 1, .num_kv_heads = 1, .head_dim = 8, .windows = {}},
      .block_size = 16,
      .kv_bytes = blocks * kBlockBytes,
      .context_length = 1024};
}

Trace trace(const std::vector<std::pair<int, int>>& lengths) {
  Trace out;
  for (const auto& [input, output] : lengths)
    out.push_back({.prompt_tokens = input, .output_tokens = output});
  return out;
}

TraceSizing size(const Trace& requests, const SizingRoom& where) {
  const auto sizing = size_for(requests, where);
  EXPECT_TRUE(sizing) << sizing.error().message;
  return sizing.value_or(TraceSizing{});
}

TEST(TraceSizing, SummarisesLengths) {
  const TraceSizing sizing = size(trace({{10, 1}, {20, 2}, {30, 9}}), room(100));
  EXPECT_EQ(sizing.num_requests, 3);
  EXPECT_EQ(sizing.input, summarize({10, 20, 30}));
  EXPECT_EQ(sizing.output, summarize({1, 2, 9}));
  EXPECT_EQ(sizing.total, summarize({11, 22, 39}));
}

TEST(TraceSizing, TheLongestRequestInWholeBlocks) {
  const TraceSizing sizing = size(trace({{10, 1}, {20, 2}, {30, 9}}), room(100));
  EXPECT_EQ(sizing.max_model_len, 48);
  EXPECT_EQ(sizing.covered_requests, 3);
  EXPECT_EQ(size(trace({{31, 1}}), room(100)).max_model_len, 32);
}

TEST(TraceSizing, OneOutlierIsNotInP99) {
  Trace requests(999, TraceRequest{.prompt_tokens = 10, .output_tokens = 5});
  requests.push_back({.prompt_tokens = 800, .output_tokens = 5});
  const TraceSizing sizing = size(requests, room(100));
  EXPECT_EQ(sizing.max_model_len, 816);
  EXPECT_EQ(sizing.p99_model_len, 16);
}

TEST(TraceSizing, ContextAndMemoryAreLimits) {
  const Trace requests = trace({{10, 5}, {2000, 1}});
  TraceSizing sizing = size(requests, room(1000));
  EXPECT_EQ(sizing.max_model_len, 1024);
  EXPECT_EQ(sizing.covered_requests, 1);
  sizing = size(requests, room(10));
  EXPECT_EQ(sizing.max_model_len, 160);
  SizingRoom unknown = room(1000);
  unknown.context_length.reset();
  EXPECT_EQ(size(requests, unknown).max_model_len, 2016);
}

TEST(TraceSizing, SequencesAreCountedInBlocks) {
  // 1 block nineteen times, 21 blocks once: 2 on average, 2 at P95 (between 1 and 21).
  std::vector<std::pair<int, int>> lengths(19, {10, 5});
  lengths.push_back({330, 5});
  const TraceSizing sizing = size(trace(lengths), room(31));
  EXPECT_EQ(sizing.num_blocks, 31);
  EXPECT_EQ(sizing.max_num_seqs, 15);
  EXPECT_EQ(sizing.p95_num_seqs, 15);
  EXPECT_EQ(size(trace(lengths), room(1000)).max_num_seqs, 20);  // more there are not
  EXPECT_EQ(size(trace({{330, 5}}), room(2)).max_num_seqs, 1);
}

TEST(TraceSizing, RoomForNoBlockIsAnError) {
  SizingRoom little = room(1);
  --little.kv_bytes;
  const auto sizing = size_for(trace({{1, 1}}), little);
  ASSERT_FALSE(sizing);
  EXPECT_EQ(sizing.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(sizing.error().message.find("511 bytes"), std::string::npos);
  little.kv_bytes = -5;
  EXPECT_FALSE(size_for(trace({{1, 1}}), little));
}

}  // namespace
}  // namespace octavo
