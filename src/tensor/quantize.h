// Weight quantization: conversion of f32 rows to stored ones, the counterpart of tensor/dequant.h.
// The codes of each type are those that llama.cpp's reference encoders choose, bit for bit, without
// an importance matrix.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace octavo {

// All types but q2_k, q3_k and q4_z.
bool can_quantize_to(DType type);

// dst: row_bytes(type, n) bytes, at any alignment. A block whose scale is beyond f16 (values above
// 8 million or so) gets an infinite one: dequantise and look.
// REQUIRES: can_quantize_to(type); values are finite; n >= 0 and a multiple of
// info(type).block_elements.
void quantize_row(DType type, const float* src, std::byte* dst, int64_t n);

}  // namespace octavo
