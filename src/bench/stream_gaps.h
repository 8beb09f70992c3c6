// A long prompt among streams that are being written: what it costs them, and what they cost it.
#pragma once

#include <optional>

#include "bench/result.h"

namespace octavo {

struct StreamGaps {
  double median_gap_s = 0;   // between two tokens of a stream, before the long prompt came
  double p99_gap_s = 0;      // while it was read
  double largest_gap_s = 0;  // the same
  double ttft_s = 0;         // of the long prompt
};

// Nothing if it cannot be said: the run has no long prompt, a stream had ended before the long
// prompt's first token, or there were no gaps before it came.
std::optional<StreamGaps> gaps_of(const RunResult& run);

}  // namespace octavo
