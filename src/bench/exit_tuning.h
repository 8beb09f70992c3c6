// `octavo tune early-exit`: which layers a model should skip when it drafts for itself, and what
// that brings.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/load.h"
#include "spec/exit_search.h"

namespace octavo {

struct ExitSearchOptions {
  std::string text;      // of the kind that the model will write
  int num_places = 256;  // of the text, where drafts are compared with the model
  std::function<void(const ExitCandidate&)> on_step = {};  // may be empty
};

struct ExitTuning {
  int num_layers = 0;
  int num_tokens = 0;  // of the text
  ExitCosts costs = {};
  std::vector<ExitCandidate> steps = {};  // one layer skipped, two, and so on
  ExitCandidate chosen = {};              // of these
  double draft_s = 0;                     // a draft of the chosen, as measured
};

// The options with which load_model() gives room for the search. Errors: those of
// read_model_config().
Result<EngineOptions> search_engine_options(EngineOptions options, const ModelSource& model,
                                            int num_places);

// Errors: those of ExitProbe::create() and of the tokenizer; unsupported (an encoder, or a single
// layer).
Result<ExitTuning> tune_early_exit(const LoadedEngine& engine, const ExitSearchOptions& options);

struct ExitRunOptions {
  std::string text;  // answers go on from three places of it
  int gen_tokens = 64;
  int runs = 3;  // in turns; of each the median counts
};

struct ExitRuns {
  double plain_tok_s = 0;                    // without drafts
  double always_tok_s = 0;                   // with drafts in every step
  double adaptive_tok_s = 0;                 // with drafts where they are expected to pay
  int64_t num_drafts = 0, num_accepted = 0;  // of those in every step
  bool same_tokens = true;                   // all three gave the same

  double always_speedup() const { return always_tok_s / plain_tok_s; }
  double adaptive_speedup() const { return adaptive_tok_s / plain_tok_s; }
};

// Generates, greedily and one at a time. Errors: those of the engine; invalid_argument (too little
// text).
Result<ExitRuns> run_early_exit(const LoadedEngine& engine, const ExitCandidate& candidate,
                                const ExitRunOptions& options);

}  // namespace octavo
