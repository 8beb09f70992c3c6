// Reference conversion of stored tensor rows to f32: the plain definition of each format, in fp32
// and in this order of operations. Kernels are tested against it; it is not meant to be fast.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace octavo {

// src: row_bytes(type, n) bytes, at any alignment; dst: n floats.
// REQUIRES: n >= 0 and a multiple of info(type).block_elements.
void dequantize_row(DType type, const std::byte* src, float* dst, int64_t n);

}  // namespace octavo
