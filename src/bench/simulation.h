// Runs a workload without a model, in simulated time, and says what a benchmark would say of it.
#pragma once

#include <string>

#include "base/result.h"
#include "bench/result.h"
#include "bench/workload.h"
#include "engine/load.h"
#include "sim/simulator.h"

namespace octavo {

struct SimulationOptions {
  std::string name = {};            // of the run
  SchedulerOptions scheduler = {};  // max_model_len 0: that of the longest request
  int num_blocks = 0;               // 0: enough for max_num_seqs sequences of max_model_len
  int block_size = 32;
  StepCostFormula cost = {};
  int max_concurrency = 0;  // as in RunnerOptions
  int block_map_rows = 0;
};

// Errors: those of Simulator::create; resource_exhausted for more blocks than a pool may have. A
// request that cannot be served is in its record.
Result<RunResult> simulate(const Workload& workload, const SimulationOptions& options);

// How long a model's steps take: fitted while a fresh engine with these options serves a small
// workload of prompts and answers, for a few seconds. REQUIRES: as make_engine.
Result<StepCostFormula> calibrate(const LoadedEngine& loaded, const EngineOptions& engine_options);

}  // namespace octavo
