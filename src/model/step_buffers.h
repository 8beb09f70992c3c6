// The activations of one step, allocated once for the largest step. Rows are tokens.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernels/api.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

struct StepShape {
  int64_t tokens;
  int64_t hidden, q_dim, kv_dim, intermediate;  // multiples of 16
  int64_t rope_pairs;
};

struct StepBuffers {
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
