// What a transformer is, as numbers: one forward pass (transformer.h) reads this description.
// A family (Llama, Qwen2) is a row of the architecture table; a model is a ModelConfig.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "kv/estimator.h"

namespace octavo {

// What a family fixes for all its models.
struct Architecture {
  std::string_view name;  // general.architecture
  bool rope_interleaved;  // rotary pairs (2i, 2i+1), as llama GGUF files permute them; else (i, i +
                          // half)
  bool qkv_bias;          // q, k and v have a bias
};

std::span<const Architecture> architectures();

struct RopeConfig {
  float base = 10000;
  int dims = 0;             // rotated dims of a head, even, <= head_dim
  float linear_factor = 1;  // "linear" scaling: positions are divided by it
  std::vector<float>
      divisors{};  // "llama3" scaling: per pair, what its frequency is divided by; empty: 1
};

struct ModelConfig {
  const Architecture* architecture = nullptr;
  std::string name;  // general.name, may be empty
  int num_layers = 0;
  int hidden_size = 0;        // multiple of 16
  int intermediate_size = 0;  // multiple of 16
  int num_heads = 0;
  int num_kv_heads = 0;    // divides num_heads: MHA, GQA or MQA
  int head_dim = 0;        // multiple of 16, at most 256
  int vocab_size = 0;      // rows of the embedding; may exceed the tokenizer's size
  int context_length = 0;  // tokens the model was made for
  float rms_eps = 0;
  bool tied_head = false;  // no output.weight: the embedding is the head
  RopeConfig rope;
  // Per layer how many positions a token looks back on, its own included; 0: all. Empty: all layers
  // see all.
  std::vector<int> windows{};
};

// Errors: unsupported (an unknown architecture, rope scaling or model key: I6), corrupt_file.
// Messages name file and key.
Result<ModelConfig> read_model_config(const GgufFile& file);

KvShape kv_shape(const ModelConfig& config);
KvShape kv_shape(const HfConfig& config);

// Frequency of each rotary pair, radians per position. Size dims / 2.
std::vector<float> rope_frequencies(const RopeConfig& rope);

}  // namespace octavo
