// Techniques beside their baselines: the same requests on the same model, with each setting in
// turn.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  // Requests in flight, 0: as they arrive. Of kThroughput there is a run for each.
  std::vector<int> max_concurrency = {};
  std::vector<int> contexts = {};  // of kv-cache: lengths of the prompt; none: 64 to 512 or 1024
  int gen_tokens = 5;              // of kv-cache: after each, 2 at least
  // Rounds over all settings, in turns. Without it 5, of which none is begun that would probably
  // end after kTimeLimit_s; there is always one.
  std::optional<int> repeat = {};
  bool full = false;  // requests that take minutes, and no limit of time
  // Sequences at once are as engine says; else as few as show what is asked.
  bool sequences_given = false;
  // A run with so many of its requests answered. May be empty.
  std::function<void(std::string_view run, int done, int total)> on_progress = {};
};

inline constexpr int kRounds = 5;
inline constexpr double kTimeLimit_s = 45;

// Whether a round more would probably end in time, after so many, one at least, in so many seconds.
bool has_time_for_another(int done, double passed_s);

struct ComparisonSubject {
  std::string_view name;     // as it is typed
  std::string_view summary;  // one line for --help
};
std::span<const ComparisonSubject> comparison_subjects();

// In place of a subject: one run for each number of requests in flight, beside nothing else.
inline constexpr std::string_view kThroughput = "throughput";

// Policies that go by a priority need different ones: made-up requests draw one of two where
// nothing else is said, and a note of the result says so.
void draw_priorities(SyntheticSpec& requests, BenchResult& result);

// The first run of the result is the baseline. Errors: invalid_argument for an unknown subject,
// context_overflow for requests that the model's context does not hold; those of load_engine.
Result<BenchResult> compare(std::string_view subject, const ComparisonOptions& options);

}  // namespace octavo
