// A long prompt among streams that are being written, over budgets of tokens and of time.
#pragma once

#include "base/result.h"
#include "bench/comparison.h"
#include "bench/load_for_run.h"
#include "bench/result.h"

namespace octavo {

// Runs end with the long prompt's first token. Errors: those of run_comparison; invalid_argument if
// in every run a stream had ended before.
Result<BenchResult> compare_chunking(const ComparisonOptions& options, const ModelFacts& facts);

}  // namespace octavo
