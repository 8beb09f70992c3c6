// How fast a model reads prompts and generates, at given batch sizes and depths, and how far that
// is from what the machine can do. No sampling: tokens are drawn beforehand, from a fixed seed.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "bench/latency_plan.h"
#include "bench/limits.h"
#include "engine/load.h"

namespace octavo {

struct LatencyOptions {
  LatencyLengths lengths;
  std::vector<int> depths = {0};
  std::vector<int> batch_sizes = {1};
  int shared_prefix = 0;  // tokens of their depth that all sequences hold in the same blocks
  int repeat = 3;         // passes of which the median is reported; one more shows where time goes
  std::function<void(int done, int total)> on_progress;  // cases; may be empty
};

// Parts of the wall-clock time that add up to 1, by the names of kStepPartNames, and what remains.
using TimeShare = std::vector<std::pair<std::string_view, double>>;
inline constexpr std::string_view kRestOfTime = "rest";

// The share that is not arithmetic: planning, waiting, bookkeeping, and what remains.
double outside_kernels(const TimeShare& shares);

struct LatencyResult {
  LatencyCase which;
  double prefill_tok_s = 0;  // of one sequence: prompt_tokens from position `depth` on
  double decode_tok_s = 0;   // of all sequences together, gen_tokens each from position `depth` on
  double weight_bytes_per_token = 0;  // weights are read once a step, for all its tokens
  double kv_bytes_per_token = 0;      // that a token reads of the cache, on average
  double read_gb_s = 0;               // the machine's limit right before and after decoding
  double prefill_multiply_share = 0;  // of the machine's limits; 1 is the limit
  double decode_read_share = 0;
  double decode_multiply_share = 0;
  TimeShare prefill_time, decode_time;
};

struct LatencyReport {
  MachineLimits limits;
  std::vector<LatencyResult> results;
  std::vector<SkippedCase> skipped;
};

// Errors: those of plan_latency(); resource_exhausted.
Result<LatencyReport> measure_latency(LoadedEngine& engine, const LatencyOptions& options);

}  // namespace octavo
