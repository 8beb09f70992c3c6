// Techniques beside their baselines: the same requests on the same model, once with each setting.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bench/result.h"
#include "bench/trace.h"
#include "bench/workload.h"
#include "engine/engine_options.h"

namespace octavo {

struct ComparisonOptions {
  EngineOptions engine;                        // what all runs have in common
  std::optional<SyntheticSpec> requests = {};  // in place of those made for the technique
  std::optional<Trace> trace = {};             // the same, recorded ones
  std::optional<int> max_concurrency = {};     // requests in flight; 0: as they arrive
  int repeat = 1;  // rounds over all settings; of each the run with the median throughput counts
  std::function<void(std::string_view run, int done, int total)> on_progress = {};  // may be empty
};

struct ComparisonSubject {
  std::string_view name;     // as it is typed
  std::string_view summary;  // one line for --help
};
std::span<const ComparisonSubject> comparison_subjects();

// In place of a subject: one run, beside nothing.
inline constexpr std::string_view kThroughput = "throughput";

// The first run of the result is the baseline. Errors: invalid_argument for an unknown subject or
// requests that the model's context does not hold; those of load_engine.
Result<BenchResult> compare(std::string_view subject, const ComparisonOptions& options);

}  // namespace octavo
