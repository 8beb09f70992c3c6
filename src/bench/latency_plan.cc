#include "bench/latency_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "kv/block_size.h"

namespace octavo {
namespace {

constexpr int64_t kMostSequences = 1 << 16;

// Blocks that a case holds at its fullest: one sequence reads the prompt, all of them generate.
int64_t blocks_needed(const LatencyLengths& lengths, const LatencyCase& which, int block_size) {
  const int64_t generating = blocks_for(int64_t{which.depth} + lengths.gen_tokens, block_size);
  const int64_t reading = blocks_for(int64_t{which.depth} + lengths.prompt_tokens, block_size);
  return std::max(which.batch_size * generating, reading);
}

Result<void> check_case(const LatencyLengths& lengths, const LatencyCase& which,
                        const LatencyRoom& room) {
  const int64_t longest =
      int64_t{which.depth} + std::max(lengths.prompt_tokens, lengths.gen_tokens);
  if (longest > room.context_length)
    return fail(ErrorCode::context_overflow, fmt::format("{} tokens, and the model's context is {}",
                                                         longest, room.context_length));
  const int64_t blocks = blocks_needed(lengths, which, room.block_size);
  if (blocks > room.num_blocks)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} blocks of KV cache, and there are {}", blocks, room.num_blocks));
  if (room.free_bytes && blocks > *room.free_bytes / std::max<int64_t>(room.bytes_per_block, 1))
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{:.1f} GiB of KV cache, and {:.1f} GiB of memory are free",
                            static_cast<double>(blocks) *
                                static_cast<double>(room.bytes_per_block) / (1 << 30),
                            static_cast<double>(*room.free_bytes) / (1 << 30)));
  return {};
}

Result<void> check_numbers(const LatencyLengths& lengths, const std::vector<int>& depths,
                           const std::vector<int>& batch_sizes) {
  const auto refuse = [](std::string_view name, int64_t value, std::string_view allowed) {
    return fail(ErrorCode::invalid_argument, fmt::format("{} is {}; {}", name, value, allowed));
  };
  if (lengths.prompt_tokens < 1)
    return refuse("prompt_tokens", lengths.prompt_tokens, "at least 1");
  if (lengths.gen_tokens < 1) return refuse("gen_tokens", lengths.gen_tokens, "at least 1");
  if (depths.empty() || batch_sizes.empty())
    return fail(ErrorCode::invalid_argument, "give at least one depth and one batch size");
  for (const int depth : depths)
    if (depth < 0) return refuse("depth", depth, "at least 0");
  for (const int batch_size : batch_sizes)
    if (batch_size < 1 || batch_size > kMostSequences)
      return refuse("batch_size", batch_size, fmt::format("1 to {}", kMostSequences));
  return {};
}

}  // namespace

Result<LatencyPlan> plan_latency(const LatencyLengths& lengths, const std::vector<int>& depths,
                                 const std::vector<int>& batch_sizes, const LatencyRoom& room) {
  OCTAVO_CHECK_OK(check_numbers(lengths, depths, batch_sizes));
  LatencyPlan plan;
  std::optional<Error> first;
  for (const int depth : depths)
    for (const int batch_size : batch_sizes) {
      const LatencyCase which{depth, batch_size};
      const auto fits = check_case(lengths, which, room);
      if (fits) {
        plan.cases.push_back(which);
        continue;
      }
      if (!first) first = fits.error();
      plan.skipped.push_back({which, "needs " + fits.error().message});
    }
  if (plan.cases.empty())
    return fail(first->code,
                fmt::format("nothing can be measured: depth {} with {} sequences {}",
                            plan.skipped.front().which.depth, plan.skipped.front().which.batch_size,
                            plan.skipped.front().reason));
  return plan;
}

}  // namespace octavo
