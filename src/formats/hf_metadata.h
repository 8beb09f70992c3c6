// A Hugging Face config.json as the metadata that a GGUF file of the same model has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf_keys.h"
#include "formats/hf_families.h"
#include "formats/hf_quantization.h"
#include "tensor/dtype.h"

namespace octavo {

// What a GGUF file keeps in a tensor of its own, though it follows from config.json.
struct HfMadeVector {
  std::string name;
  std::vector<float> values;
};

struct HfMetadata {
  const HfFamily* family = nullptr;
  GgufKeys keys;
  std::vector<HfMadeVector> vectors;
  std::optional<HfQuantization> quantization = {};  // nothing: the weights are plain
  bool multimodal = false;  // the folder has tensors of an image part as well
  bool tied_head = false;
  bool attention_bias = false;  // q, k, v and the output
  bool mlp_bias = false;
  int num_layers = 0;
  int head_dim = 0;
  int num_experts = 0;                  // 0: none
  std::vector<std::string> notes = {};  // fields that are passed over
};

// Reads both spellings of rope: rope_parameters, and the older rope_theta with rope_scaling.
// Errors: those of parse_hf_config; unsupported (an unknown family, rope kind or field: it may
// change what the model computes; a value of a known one that asks for what is not done);
// corrupt_file (two spellings of one setting that say different things).
Result<HfMetadata> read_hf_metadata(std::string_view json, const std::string& name,
                                    std::string_view model_name);

}  // namespace octavo
