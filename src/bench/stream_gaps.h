// A long prompt among streams that are being written: what it costs them, and what they cost it.
#pragma once

#include <optional>

#include "base/result.h"
#include "bench/comparison.h"
#include "bench/load_for_run.h"
#include "bench/result.h"

namespace octavo {

struct StreamGaps {
  double median_gap_s = 0;   // between two tokens of a stream, before the long prompt came
  double p99_gap_s = 0;      // while it was read
  double largest_gap_s = 0;  // the same
  double ttft_s = 0;         // of the long prompt
};

// Nothing if it cannot be said: a stream had ended before the long prompt's first token, or there
// were no gaps before it came. The long prompt is the request with most prompt tokens.
std::optional<StreamGaps> gaps_of(const RunResult& run);

// Eight streams and one long prompt, over budgets of tokens and of time. The settings of each run
// hold its gaps; runs for which they cannot be said are marked as void.
Result<BenchResult> compare_chunking(const ComparisonOptions& options, const ModelFacts& facts);

}  // namespace octavo
