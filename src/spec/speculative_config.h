// What `--speculative-config` says: JSON with vLLM's names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "spec/drafter.h"
#include "spec/suffix.h"

namespace octavo {

enum class DraftMethod : uint8_t { ngram, suffix, draft_model };
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

  bool uses(DraftMethod method) const;
};

// {"method": "ngram" | "suffix" | "draft_model" | several with commas, "num_speculative_tokens": 5,
// "model": ..., ...}; docs/speculative.md lists the fields. Empty text: no speculation. Errors:
// invalid_argument, naming the field.
Result<SpeculativeConfig> parse_speculative_config(std::string_view text);

}  // namespace octavo
