// Which tensor of a model gets which type when the model is quantised.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace octavo {

// What decides, besides the tensor itself.
struct QuantizeRules {
  DType type = DType::q8_0;  // one that can_quantize_to()
  bool pure = false;         // this type for all matrices
  bool tied = true;          // there is no output.weight
  int num_layers = 0;
  int num_experts = 0;
};

// REQUIRES: names are canonical.
QuantizeRules make_rules(DType type, bool pure, std::span<const TensorView> tensors,
                         int num_experts);

struct TensorPlan {
  DType type = DType::f32;
  // Which type was meant, where rows are no whole number of its blocks.
  std::optional<DType> instead_of = std::nullopt;
};

// Matrices are quantised, but for the router of experts and what only a few families have and is
// small; all else keeps its type. Unless `pure`, and of quantised types only: the output head (and
// the embedding where it serves as one) gets q6_k, q8_0 of q8_0; for q4_k and q5_k half of the
// value and down projections, at both ends of the model and every third between, get q6_k. These
// are llama.cpp's mixtures Q4_K_M and Q5_K_M.
TensorPlan plan_tensor(const TensorView& tensor, const QuantizeRules& rules);

// What GGUF calls a file that is mostly of this type: the value of general.file_type.
uint32_t gguf_file_type(DType type);

}  // namespace octavo
