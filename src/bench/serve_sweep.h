// Load on a server with several numbers of requests at once, one after the other.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "bench/serve_load.h"

namespace octavo {

struct ServeSweepOptions {
  ServeLoadOptions load = {};     // its max_concurrency is not looked at
  std::vector<int> levels = {0};  // dialogues under way at most; 0: as they arrive
  int rounds = 1;                 // over all levels
  // The dialogues of the so-manieth load, from 0 on. Prompts that were sent before would be found
  // in the server's prefix cache.
  std::function<Result<std::vector<Dialogue>>(int load)> dialogues = {};
};

// A run for each level, named by it, with the figures of all rounds; of one level as run_serve_load
// has it. A sweep that was stopped has what there was. Errors: as of run_serve_load, and those of
// `dialogues`.
Result<ServeLoadResult> run_serve_sweep(const ServeSweepOptions& options);

}  // namespace octavo
