// What matrices become while a folder of unquantised weights is read.
#pragma once

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

}  // namespace octavo
