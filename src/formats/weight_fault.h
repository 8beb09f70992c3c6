// What can be wrong with values that are to be stored in another type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "tensor/dtype.h"

namespace octavo {

enum class WeightFault : uint8_t { none, not_finite, too_large };

bool all_finite(const float* values, int64_t n);

// Rounds a row as quantize_row does, which asks for finite values, and looks at values and result.
WeightFault quantize_checked(DType type, const float* values, std::byte* out, int64_t n);

// advice: what to do about values too large for the type.
tl::unexpected<Error> weight_fault_error(std::string_view file, std::string_view tensor, DType type,
                                         WeightFault fault, std::string_view advice);

}  // namespace octavo
