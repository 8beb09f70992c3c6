// Runs a workload on an engine, in this process, and records what happened.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "bench/result.h"
#include "bench/workload.h"
#include "engine/load.h"

namespace octavo {

struct RunnerOptions {
  std::string name;         // of the run
  int max_concurrency = 0;  // requests handed over at once, at most; 0: as they arrive
  int block_map_rows = 0;   // snapshots of the block map to keep, about; 0: none
  std::function<void(int done, int total)> on_progress = {};  // may be empty
};

// A fresh engine with these options serves the requests: greedy, each to its number of tokens. An
// earlier run's prefixes are not found. Errors: those of make_engine; a request that fails is in
// its record. REQUIRES: as make_engine.
Result<RunResult> run_workload(const LoadedEngine& loaded, const EngineOptions& engine_options,
                               const Workload& workload, const RunnerOptions& options);

}  // namespace octavo
