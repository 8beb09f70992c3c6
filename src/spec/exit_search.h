// Which layers a model should skip when it drafts for itself: a search on text, on nothing but
// numbers.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/result.h"
#include "spec/draft_length.h"

namespace octavo {

// At one place of a text: what the model says with some layers skipped, beside what it says.
struct ExitSample {
  bool agrees = false;   // on the most probable token
  float confidence = 0;  // of the partial model in its own
};

// Seconds of one sequence alone.
struct ExitCosts {
  double step_s = 0;          // the whole model, one token
  double verify_token_s = 0;  // each further token of such a step
  double layer_s = 0;         // of the step, each layer
};

// A way of drafting, and what it is predicted to bring.
struct ExitPrediction {
  double threshold = 0;  // confidence below which no draft is made
  int num_drafts = 1;    // at most, in a step
  double drafted = 0;    // share of places with enough confidence
  double accepted = 0;   // of these, drafts that come true
  double speedup = 0;    // over no drafts
};

// The best over thresholds and lengths, as if every place were like the samples. REQUIRES: a
// sample.
ExitPrediction predict_exit(std::span<const ExitSample> samples, int num_skipped,
                            const ExitCosts& costs);

struct ExitCandidate {
  std::vector<int> skipped_layers;  // ascending
  ExitPrediction prediction;
};

struct ExitSearch {
  int num_layers = 0;
  ExitCosts costs;
  // Samples of the model without these layers.
  std::function<Result<std::vector<ExitSample>>(std::span<const int> skipped)> sample;
  int candidates = 8;  // layers tried for each further one to skip; all of them for the first
  int patience = 4;    // further layers that bring nothing before it gives up
  std::function<void(const ExitCandidate&)> on_step = {};  // may be empty
};

// Skips one layer after the other, each time the one that promises most. Returns the sets on the
// way, with one layer skipped, two, and so on. Errors: those of `sample`.
Result<std::vector<ExitCandidate>> search_exit(const ExitSearch& search);

// The most promising. REQUIRES: not empty.
const ExitCandidate& best_exit(std::span<const ExitCandidate> candidates);

}  // namespace octavo
