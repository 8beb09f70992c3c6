#include "bench/trace_sizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kv/block_size.h"

namespace octavo {
namespace {

int64_t total_tokens(const TraceRequest& request) {
  return int64_t{request.prompt_tokens} + request.output_tokens;
}

template <class Value>
Summary summarize_requests(const Trace& trace, Value value) {
  std::vector<double> values;
  for (const TraceRequest& request : trace) values.push_back(static_cast<double>(value(request)));
  return summarize(std::move(values));
}

// A length in whole blocks that the model and the memory allow.
int64_t allowed_length(double tokens, const SizingRoom& room, int64_t num_blocks) {
  const auto blocks = blocks_for(static_cast<int64_t>(std::ceil(tokens)), room.block_size);
  const int64_t length = std::min(blocks, num_blocks) * room.block_size;
  return std::min(length, room.context_length.value_or(length));
}

int64_t sequences(double blocks_each, const TraceSizing& sizing) {
  const double fit = static_cast<double>(sizing.num_blocks) / blocks_each;
  return std::clamp<int64_t>(static_cast<int64_t>(fit), 1, sizing.num_requests);
}

Result<int64_t> blocks_in_memory(const SizingRoom& room) {
  OCTAVO_TRY(const KvEstimate block,
             estimate(room.shape, room.block_size, 1, room.type, room.block_size));
  const int64_t count = block.sequences_that_fit(room.kv_bytes);
  if (count > 0) return count;
  return fail(ErrorCode::resource_exhausted,
              fmt::format("{} bytes for the KV cache are less than one block of {} tokens, which "
                          "takes {}; free memory, or give --memory",
                          room.kv_bytes, room.block_size, block.total_bytes));
}

}  // namespace

Result<TraceSizing> size_for(const Trace& trace, const SizingRoom& room) {
  TraceSizing sizing;
  OCTAVO_TRY(sizing.num_blocks, blocks_in_memory(room));
  sizing.num_requests = static_cast<int64_t>(trace.size());
  sizing.input = summarize_requests(trace, [](auto& request) { return request.prompt_tokens; });
  sizing.output = summarize_requests(trace, [](auto& request) { return request.output_tokens; });
  sizing.total = summarize_requests(trace, total_tokens);
  sizing.max_model_len = allowed_length(sizing.total.max, room, sizing.num_blocks);
  sizing.p99_model_len = allowed_length(sizing.total.p99, room, sizing.num_blocks);
  sizing.covered_requests = std::ranges::count_if(
      trace, [&](auto& request) { return total_tokens(request) <= sizing.max_model_len; });
  const auto blocks_of = [&](int64_t tokens) { return blocks_for(tokens, room.block_size); };
  const Summary blocks =
      summarize_requests(trace, [&](auto& request) { return blocks_of(total_tokens(request)); });
  sizing.max_num_seqs = sequences(blocks.mean, sizing);
  sizing.p95_num_seqs = sequences(blocks.p95, sizing);
  return sizing;
}

}  // namespace octavo
