// adapter_config.json of a LoRA adapter: by how much its product is scaled, and that it is nothing
// else than plain LoRA.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace octavo {

struct PeftConfig {
  int rank = 0;
  double alpha = 0;
  bool sqrt_rank = false;  // use_rslora: alpha / sqrt(rank)
  // Modules whose rank or alpha differs: (end of the module's name, value).
  std::vector<std::pair<std::string, int>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;

  // Of a module, by its name in the model ("model.layers.0.self_attn.q_proj"). Errors: unsupported
  // (patterns that contradict each other: which of them goes first is not known here).
  struct Size {
    int rank;
    float scale;
  };
  Result<Size> size_of(std::string_view module) const;

  std::string file;
};

// Errors: corrupt_file, unsupported (a field that changes what an adapter computes; an unknown one
// that is set). They name the field.
Result<PeftConfig> parse_peft_config(std::string_view text, const std::string& name);

}  // namespace octavo
