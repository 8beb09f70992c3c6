// What is run beside what, for each subject of a comparison.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/comparison.h"
#include "bench/load_for_run.h"
#include "bench/workload.h"

namespace octavo {

struct Variant {
  std::string name = {};
  EngineOptions engine = {};
  std::optional<double> x = {};  // as in RunResult
  std::string series = {}, group = {};
  std::optional<SyntheticSpec> requests = {};  // of this one alone
  std::optional<int> max_concurrency = {};     // the same
};

struct ComparisonPlan {
  std::string title = {};
  std::string x_label = {};                // as in BenchResult
  std::vector<std::string> headline = {};  // the same
  SyntheticSpec requests = {};
  int max_concurrency = 0;
  int block_map_rows = 0;
  bool has_long_prompt = false;  // the run ends with its first token, and the gaps are measured
  std::vector<Variant> variants = {};
};

// Of all subjects but chunking, which measures before it plans. invalid_argument for an unknown
// one.
Result<ComparisonPlan> plan_comparison(std::string_view subject, const ComparisonOptions& options,
                                       const ModelFacts& facts);

}  // namespace octavo
