// What a family of models fixes for all its members. A family is one row of a table; the forward
// pass (transformer.h) reads the row and never asks for a name.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace octavo {

enum class Activation : uint8_t { silu, gelu_tanh };
enum class QkNorm : uint8_t { none, each_head, all_heads };  // before they are rotated
enum class HasExperts : uint8_t { no, some, all };           // which models of the family

struct Architecture {
  std::string_view name;  // general.architecture

  // Rotary pairs are (2i, 2i+1), as llama GGUF files permute them; else (i, i + half).
  bool rope_interleaved = false;
  bool qkv_bias = false;         // q, k and v have a bias
  bool optional_biases = false;  // any product has one if the file does
  bool fused = false;            // one matrix for q, k and v, one for gate and up
  QkNorm qk_norm = QkNorm::none;
  bool pre_norms = true;          // what a block reads of the residual is normed before
  bool post_norms = false;        // what it adds to the residual is normed before
  bool scaled_embedding = false;  // times sqrt(hidden size)
  bool multipliers = false;       // a file has factors of its embedding, residual and logits
  Activation activation = Activation::silu;
  HasExperts experts = HasExperts::no;

  bool windows = false;       // a file may limit how far layers look back:
  int window_pattern = 0;     //   all but every N-th layer, by default; 0: all layers
  float local_rope_base = 0;  // of layers with a window, by default; 0: as of the others

  // Scores and logits are kept between -cap and cap, by default; 0: they are not.
  float score_cap = 0;
  float logit_cap = 0;

  // BERT's kind: every token sees the whole sequence, positions are learned, norms come after what
  // they follow and, like all products, have a bias; one matrix up, GELU by erf. It makes hidden
  // states and no logits, and keeps no K and V beyond a step.
  bool encoder = false;

  // Models of so many layers scale scores by the hidden size per head, not by the head size.
  int layers_scaled_by_width = 0;
};

std::span<const Architecture> architectures();
const Architecture* find_architecture(std::string_view name);  // nullptr: not known

}  // namespace octavo
