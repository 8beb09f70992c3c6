// The activations of one step, allocated once for the largest step. Rows are tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "kernels/api.h"
#include "model/model_config.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

// A step of at most this many tokens norms and rounds every row on every thread: cheaper than the
// barrier that would be needed after sharing the rows out.
constexpr int kFewRows = 8;

struct BufferShape {
  int64_t tokens;
  int64_t hidden, q_dim, kv_dim, intermediate;  // multiples of 16
  int64_t rope_angles;                          // of a token: pairs of all kinds of rotation
  bool post_norms;
  int64_t experts, experts_used;  // of a layer, by a token; 0: there are none
  int64_t lora_rank;              // of adapters, at most; 0: there are none
  int threads;
};

BufferShape buffer_shape(const ModelConfig& config, int max_num_batched_tokens, int threads,
                         int max_lora_rank);

// Rows about to be multiplied: as floats and, for quantised weights, rounded.
struct RowBuffers {
  float* normed = nullptr;  // [rows][hidden]
  kernels::A8 rounded{};    // of the widest input; cols is set by the user of the moment
};

// How the tokens of a step go through the experts of a layer. Rows of the same expert lie together
// ("grouped"), each group from a multiple of kA8Tokens rows on, so that an expert's weights are
// read once for all of them.
struct ExpertBuffers {
  float* scores = nullptr;        // [tokens][experts, in whole panels], of the router
  int32_t* chosen = nullptr;      // [tokens][used] expert
  float* shares = nullptr;        // [tokens][used] of its output in the token's
  int32_t* places = nullptr;      // [tokens][used] grouped row
  int32_t* first_rows = nullptr;  // [experts] of each group
  int32_t* counts = nullptr;      // [experts] rows of each group
  int32_t* active = nullptr;      // [experts] those that have any come first
  float* rows = nullptr;          // [grouped rows][hidden], what goes in, then what comes out
  float* inner = nullptr;         // [grouped rows][intermediate]
  kernels::A8 rounded{};          // of either; cols is set by the user of the moment
  int64_t max_rows = 0;           // grouped
};

// What adapters make of the input of the products that follow: A x, scaled.
struct LoraBuffers {
  float* shrunk = nullptr;  // [matrices of one product][tokens][stride]
  int64_t tokens = 0;
  int64_t stride = 0;  // the largest rank, in whole panels
};
constexpr int64_t kLoraDeltaFloats = 4096;

// What only one thread uses.
struct ThreadBuffers {
  RowBuffers few;             // kFewRows rows
  float* products = nullptr;  // [product_floats], results on their way into other rows, or a row
  float* heads = nullptr;     // rotated heads of one attention item: queries, then the key
  float* deltas = nullptr;    // [kLoraDeltaFloats], what adapters add to products
};

// Logits of this many rows at most in one call.
int max_logits_rows(int vocab_size, int max_num_batched_tokens);
// Floats from row to row: whole panels.
constexpr int logits_stride(int vocab_size) {
  return (vocab_size + kernels::kPanelRows - 1) / kernels::kPanelRows * kernels::kPanelRows;
}

struct StepBuffers {
  StepBuffers() = default;
  static size_t bytes(const BufferShape& shape);  // that allocate() takes
  static Result<StepBuffers> allocate(const BufferShape& shape);

  float* residual = nullptr;   // [tokens][hidden]
  float* q = nullptr;          // [tokens][q_dim]
  float* k = nullptr;          // [tokens][kv_dim]
  float* v = nullptr;          // [tokens][kv_dim]
  float* attended = nullptr;   // [tokens][q_dim]
  float* inner = nullptr;      // [tokens][intermediate], activation(gate) * up
  float* projected = nullptr;  // [tokens][hidden], on the way to the residual by way of a norm
  float* cosines = nullptr;    // [tokens][rope_angles]
  float* sines = nullptr;      // [tokens][rope_angles]
  ExpertBuffers experts;
  LoraBuffers lora;
  RowBuffers many;  // tokens rows, shared by all threads

  std::vector<ThreadBuffers> threads;
  int64_t product_floats = 0;

  AlignedBuffer memory;

 private:
  explicit StepBuffers(const BufferShape& shape);
};

}  // namespace octavo
