// What matrices become while a folder of unquantised weights is read, and the rounding that does
// it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "tensor/dtype.h"

namespace octavo {

// Of the matrices only: vectors, and the routers of experts, stay exact.
struct WeightTypes {
  std::optional<DType> matrices = {};  // nothing: as stored
  bool operator==(const WeightTypes&) const = default;
};

// From the names that users give. dtype: auto, float32 (both: as stored), float16 or bfloat16;
// quantization: empty or none, int8 (blocks of q8_0), int4 (blocks of q4_0); it wins over dtype.
// Errors: invalid_argument.
Result<WeightTypes> weight_types(std::string_view dtype, std::string_view quantization);

// Rounds to nearest. q8_0 and q4_0 as llama.cpp's reference code defines them: a block's scale is
// its largest value, by magnitude, over 127 or -8.
// REQUIRES: type is f32, f16, bf16, q8_0 or q4_0; n is a multiple of its block; dst has
// row_bytes(type, n) bytes.
void round_row(DType type, const float* src, std::byte* dst, int64_t n);

}  // namespace octavo
