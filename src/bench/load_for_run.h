// A model loaded for one measured run.
#pragma once

#include <map>
#include <string>

#include "base/result.h"
#include "bench/workload.h"
#include "engine/load.h"

namespace octavo {

// What a comparison needs to know of a model before it makes requests for it.
struct ModelFacts {
  TokenRange tokens;  // ids of prompts
  int max_model_len = 0;
  int64_t kv_bytes_per_block = 0;
};
Result<ModelFacts> model_facts(const EngineOptions& options);

// context_overflow if a request is longer than the model's context, naming both.
Result<void> check_lengths(const Workload& workload, int max_model_len);

// With room for the longest request of the workload, and no more context than needed where
// max_model_len is not given. context_overflow, naming the lengths, if the model cannot hold it.
Result<LoadedEngine> load_for(EngineOptions options, const Workload& workload);

// The settings that runs may differ in, as flags name them.
std::map<std::string, std::string> settings_of(const EngineOptions& options);

}  // namespace octavo
