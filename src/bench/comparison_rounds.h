// Runs the variants of a comparison in turns, several times.
#pragma once

#include "base/result.h"
#include "bench/comparison_plan.h"
#include "bench/load_for_run.h"
#include "bench/result.h"

namespace octavo {

// Every run of the result has the figures of all rounds; its requests are those of the round with
// the median throughput. Where greedy answers to the same requests differ, a note says so. Errors:
// invalid_argument for a request that failed; those of make_workload, check_lengths and
// load_engine.
Result<BenchResult> run_comparison(const ComparisonPlan& plan, const ComparisonOptions& options,
                                   const ModelFacts& facts);

// The requests of a variant.
Result<Workload> workload_of(const ComparisonPlan& plan, const Variant& variant,
                             const ComparisonOptions& options, TokenRange tokens);

}  // namespace octavo
