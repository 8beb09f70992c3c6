// What a transformer is, as numbers: one forward pass (transformer.h) reads this description.
// A family (Llama, Gemma 3) is a row of the architecture table; a model is a ModelConfig.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/hf_config.h"
#include "formats/model_source.h"
#include "kv/estimator.h"
#include "model/architecture.h"
#include "model/rope.h"

namespace octavo {

// Each token goes through the few experts, of all that a layer has, which a router picks for it.
struct ExpertConfig {
  int count = 0;  // of a layer; 0: one feed-forward network and no router
  int used = 0;   // by a token
};
constexpr int kMaxExperts = 1024;

struct ModelConfig {
  const Architecture* architecture = nullptr;
  std::string name;  // general.name, may be empty
  int num_layers = 0;
  int hidden_size = 0;        // multiple of 16
  int intermediate_size = 0;  // multiple of 16; of each expert, where there are any
  ExpertConfig experts{};
  int num_heads = 0;
  int num_kv_heads = 0;   // divides num_heads: MHA, GQA or MQA
  int head_dim = 0;       // multiple of 16, at most 256
  float score_scale = 0;  // of attention, mostly 1 / sqrt(head_dim)
  float score_cap = 0;    // scores become cap * tanh(score / cap); 0: they do not
  int vocab_size = 0;     // rows of the embedding; may exceed the tokenizer's size
  float embedding_scale = 1;
  float residual_scale = 1;  // of what a block adds
  float logit_scale = 1;
  float logit_cap = 0;     // as score_cap, of the scaled logits
  int context_length = 0;  // tokens the model was made for
  float norm_eps = 0;
  bool tied_head = false;  // no output.weight: the embedding is the head
  RopeConfig rope;
  std::optional<RopeConfig> local_rope{};  // of layers with a window; nothing: the same
  // Per layer how many positions a token looks back on, its own included; 0: all. Empty: all layers
  // see all.
  std::vector<int> windows{};

  // Of the KV cache. An encoder's layers use the same one in turn.
  int num_kv_layers() const { return architecture->encoder ? 1 : num_layers; }
  int kv_layer(int layer) const { return architecture->encoder ? 0 : layer; }
  int window(int layer) const { return windows.empty() ? 0 : windows[static_cast<size_t>(layer)]; }
};

// Errors: unsupported (an unknown architecture, rope scaling or model key: I6), corrupt_file.
// Messages name file and key.
Result<ModelConfig> read_model_config(const ModelSource& file);

// Of so many layers all but every `every`-th have the window; every = 0: all have.
std::vector<int> layer_windows(int layers, int window, int every);

KvShape kv_shape(const ModelConfig& config);
KvShape kv_shape(const HfConfig& config);

}  // namespace octavo
