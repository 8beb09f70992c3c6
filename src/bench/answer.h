// What a result says, in sentences: the first thing that a reader wants of it.
#pragma once

#include <string>
#include <vector>

#include "bench/compare_runs.h"
#include "bench/result.h"

namespace octavo {

// One for each figure of the headline, of a sweep with two lines one for either end; of a result
// without runs none. What is no difference beyond noise is said to be none.
std::vector<std::string> answers(const BenchResult& result);
std::vector<std::string> answers(const BenchResult& result, const std::vector<ComparisonRow>& rows);

// The figures that answer what was asked, of those that the runs have.
std::vector<const ComparisonRow*> headline_rows(const BenchResult& result,
                                                const std::vector<ComparisonRow>& rows);

// "8 requests at once": what a run is called outside tables.
std::string run_text(const BenchResult& result, const RunResult& run);

}  // namespace octavo
