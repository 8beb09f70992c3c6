// The shape of a model as its Hugging Face config.json gives it: what the memory of a KV cache is
// computed from. Any model_type is accepted; whether a model can be run is not decided here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace octavo {

struct HfConfig {
  std::string model_type;  // "qwen2"; empty if not given
  int64_t num_hidden_layers = 0;
  int64_t hidden_size = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;  // default: num_attention_heads
  int64_t head_dim = 0;             // default: hidden_size / num_attention_heads
  std::optional<int64_t> max_position_embeddings;
  std::optional<int64_t> vocab_size;
  std::optional<DType> dtype;  // of the weights: "dtype", or the older "torch_dtype"

  // One per layer: how many tokens back it attends to, 0 for all. From layer_types; else from
  // sliding_window with use_sliding_window and max_window_layers (Qwen) or a pattern, every N-th
  // layer global (Gemma, Cohere).
  std::vector<int64_t> windows;
};

// In a multimodal configuration, the text model's object text_config is read.
// Errors: corrupt_file (not JSON; a field missing, of a wrong type or out of range), unsupported
// (too large, too deep, an unknown layer type or dtype). `name` is for messages.
Result<HfConfig> parse_hf_config(std::string_view json, const std::string& name);

// Errors: also those of FileMap::open.
Result<HfConfig> read_hf_config(const std::string& path);

}  // namespace octavo
