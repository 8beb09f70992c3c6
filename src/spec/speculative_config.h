// What `--speculative-config` says: JSON with vLLM's names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/drafter.h"
#include "spec/suffix.h"

namespace octavo {

enum class DraftMethod : uint8_t { ngram, suffix, draft_model, early_exit };
std::string_view name(DraftMethod method);

struct SpeculativeConfig {
  std::vector<DraftMethod> methods;  // the first that has a guess makes it; empty: no speculation
  std::string model;                 // of draft_model
  int num_speculative_tokens = 5;
  bool adaptive = true;
  int branching_factor = 1;  // guesses for one place, of methods that have several
  int prompt_lookup_min = 2, prompt_lookup_max = 5;
  SuffixOptions suffix = {};
  RejectionSampleMethod rejection_sample_method = RejectionSampleMethod::strict;
  // Of early_exit. Nothing: what `octavo tune early-exit` has found for the model.
  std::optional<std::vector<int>> skip_layers = {};
  std::optional<double> draft_confidence_threshold = {};

  bool uses(DraftMethod method) const;
};

// {"method": "ngram" | "suffix" | "draft_model" | "early_exit" | several with commas or in a list,
// "num_speculative_tokens": 5, "model": ..., ...}; docs/speculative.md lists the fields. A model
// alone is a draft model. Empty text: no speculation. Errors: invalid_argument, naming the field.
Result<SpeculativeConfig> parse_speculative_config(std::string_view text);

}  // namespace octavo
