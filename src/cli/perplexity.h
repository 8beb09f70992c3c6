// How well a model predicts a text: what `perplexity` prints and `quantize` compares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/terminal.h"
#include "engine/engine_options.h"

namespace octavo::cli {

struct PerplexityScores {
  std::vector<double> window_nll;
  std::vector<int> window_tokens;  // predicted ones
  double nll = 0;
  int64_t predicted_tokens = 0;

  double perplexity() const;
};

// Loads options.model. `file`: text, cut into windows of `context` tokens, or JSON with windows.
// With progress. Errors: those of reading, loading and scoring; context_overflow, invalid_argument
// (too little text).
Result<PerplexityScores> measure_perplexity(EngineOptions options, const std::string& file,
                                            int context, Terminal& terminal);

}  // namespace octavo::cli
