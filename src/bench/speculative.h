// What guessing tokens ahead gains: the same prompts with each way of guessing and without, in
// turns.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bench/speculative_run.h"
#include "bench/spread.h"
#include "engine/load.h"

namespace octavo {

struct SpeculativeMethod {
  std::string name;
  std::string config = {};  // as of --speculative-config; empty: synthetic guesses
  // That guesses are right with this probability, and cost what the draft model's do, if there is
  // one.
  std::optional<double> synthetic = {};
  bool adaptive = true;  // of synthetic guesses; false: as many as there are, always
};

struct SpeculativeOptions {
  EngineOptions engine;  // that the model was loaded with
  std::vector<SpeculativeMethod> methods;
  std::vector<std::string> tasks = {"copy", "code", "chat", "random"};
  std::vector<int> batch_sizes = {1, 4, 16};
  int output_len = 96;  // tokens of an answer at most
  int num_prompts = 8;  // of a task at most
  int repeat = 3;       // rounds, of which medians are taken; one more is not counted
  bool ignore_eos = false;
  std::function<void(int done, int total)> on_progress = {};  // may be empty
};

// What the learned costs of steps say, for guesses that are right as often as was measured.
struct SpeculativePrediction {
  double speedup = 0;  // with the best number of guesses
  int num_drafts = 0;  // that number
};

struct SpeculativeRow {
  std::string task, method;
  int batch_size = 0;
  double tok_s = 0, off_tok_s = 0;  // of steps of full batches that read no prompt; medians
  double speedup = 0;  // median over the rounds; within one, by the run without beside it
  double lowest = 0, highest = 0;  // of the rounds
  std::optional<Change> change =
      {};                      // the same, with what is called of it; nothing without guesses
  double acceptance = 0;       // share of the verified guesses that came true
  double accepted_length = 0;  // tokens gained where guesses were verified, the sure one included
  double tokens_per_step = 0;  // of one sequence
  double draft_share = 0;      // of the time
  double draft_cost = 0;       // of one guess of one sequence, in steps without guesses
  // As without guessing; nothing: they need not be (probabilistic, and not greedy).
  std::optional<bool> same_answers = true;
  std::optional<SpeculativePrediction> predicted = {};  // of synthetic guesses
  RunResult record;                                     // of the median round
};

// Rows by task, batch size and method, the first of each without guesses. Errors: invalid_argument
// (an unknown task; a config that cannot be), context_overflow, those of requests.
Result<std::vector<SpeculativeRow>> measure_speculation(const LoadedEngine& loaded,
                                                        const SpeculativeOptions& options);

}  // namespace octavo
