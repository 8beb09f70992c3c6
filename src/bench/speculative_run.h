// One task answered by one engine, and what guessing did in it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/result.h"
#include "bench/speculative_tasks.h"
#include "engine/load.h"

namespace octavo {

using Answers = std::vector<std::vector<TokenId>>;  // by prompt

struct SpeculativeRun {
  RunResult record;
  Answers answers;
  // Of steps of full batches that read no prompt.
  int64_t tokens = 0;       // that answers gained
  int64_t slots = 0;        // sequences in them: each would have gained one token without guesses
  int64_t kv_tokens = 0;    // context looked back on, summed over the sequences
  double seconds = 0;       // all of it, guessing included
  double draft_s = 0;       // guessing
  SpeculatorStats guesses;  // of the run alone, all steps

  double tok_s() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

// An engine to measure, over a model that others use too, though not at the same time: no run finds
// anything of another one in the prefix cache.
class SpeculativeEngine {
 public:
  // speculator: nullptr: none.
  static Result<std::unique_ptr<SpeculativeEngine>> create(const LoadedEngine& loaded,
                                                           const EngineOptions& options,
                                                           std::unique_ptr<Speculator> speculator);

  // Every prompt once, and again from the first until there are twice as many as `batch_size`, if
  // that is not 1; `batch_size` at once. What is learned from answers is used in this run alone,
  // and not in a repetition of the same prompt. Errors: those of requests.
  Result<SpeculativeRun> run(const SpeculativeTask& task, int batch_size, int output_len);

  // How long steps take, as the engine has learned so far.
  StepTimeModel step_model();

 private:
  struct Open;

  SpeculativeEngine() = default;
  void record_step(const StepReport& report);
  SpeculatorStats stats();
  Request request(const SpeculativeTask& task, size_t i, int output_len) const;
  Result<void> read_prompt(const SpeculativeTask& task, size_t i);
  void start(const SpeculativeTask& task, size_t i, int output_len, Open& open);

  std::unique_ptr<Engine> engine_;
  // Of the run on its way; while requests are, of the engine's thread.
  SpeculativeRun run_;
  std::chrono::steady_clock::time_point start_;
  int batch_size_ = 0;
  int64_t gained_ = 0;  // by the step on its way
  int num_runs_ = 0;
};

}  // namespace octavo
