// Runs a workload on an engine, in this process, and records what happened.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "bench/result.h"
#include "bench/workload.h"
#include "engine/load.h"

namespace octavo {

inline constexpr int kStreamTokens = 16;

struct RunnerOptions {
  std::string name;         // of the run
  int max_concurrency = 0;  // requests handed over at once, at most; 0: as they arrive
  int block_map_rows = 0;   // snapshots of the block map to keep, about; 0: none
  // This request, by its index, is the last to be handed over: when all others have kStreamTokens
  // tokens, or ended. When it has its first token they are stopped, and count as completed.
  std::optional<size_t> long_request = {};
  std::function<void(int done, int total)> on_progress = {};  // may be empty
  // Every answer, on the engine's thread. May be empty.
  std::function<void(size_t request, const std::vector<TokenId>&)> on_answer = {};
};

// A fresh engine with these options serves the requests: greedy, each to its number of tokens. An
// earlier run's prefixes are not found. Errors: those of make_engine; a request that fails is in
// its record. REQUIRES: as make_engine.
Result<RunResult> run_workload(const LoadedEngine& loaded, const EngineOptions& engine_options,
                               const Workload& workload, const RunnerOptions& options);

}  // namespace octavo
