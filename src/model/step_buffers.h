// The activations of one step, allocated once for the largest step. Rows are tokens.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernels/api.h"
#include "model/model_config.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

struct StepShape {
  int64_t tokens;
  int64_t hidden, q_dim, kv_dim, intermediate;  // multiples of 16
  int64_t rope_pairs;
};

StepShape step_shape(const ModelConfig& config, int max_num_batched_tokens);

// Logits of this many rows at most in one call: bounds the caller's buffer, 3 MB for a vocabulary
// of 50,000.
constexpr int max_logits_rows(int max_num_batched_tokens) {
  return max_num_batched_tokens < 16 ? max_num_batched_tokens : 16;
}
// Floats from row to row: whole panels.
constexpr int logits_stride(int vocab_size) {
  return (vocab_size + kernels::kPanelRows - 1) / kernels::kPanelRows * kernels::kPanelRows;
}

struct StepBuffers {
  static size_t bytes(const StepShape& shape);  // that allocate() takes
  static Result<StepBuffers> allocate(const StepShape& shape);

  float* residual = nullptr;   // [tokens][hidden]
  float* normed = nullptr;     // [tokens][hidden]
  float* q = nullptr;          // [tokens][q_dim]
  float* k = nullptr;          // [tokens][kv_dim]
  float* v = nullptr;          // [tokens][kv_dim]
  float* attended = nullptr;   // [tokens][q_dim]
  float* projected = nullptr;  // [tokens][hidden]
  float* gate = nullptr;       // [tokens][intermediate]
  float* up = nullptr;         // [tokens][intermediate]
  float* cosines = nullptr;    // [tokens][rope_pairs]
  float* sines = nullptr;      // [tokens][rope_pairs]
  kernels::A8 rounded{};       // of the widest input; cols is set by the user of the moment

  AlignedBuffer memory;
};

}  // namespace octavo
