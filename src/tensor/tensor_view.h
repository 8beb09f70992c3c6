// A named tensor inside a mapped file. Owns nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tensor/dtype.h"

namespace octavo {

struct TensorView {
  std::string name;
  DType type = DType::f32;
  // GGUF order: shape[0] is the contiguous dimension (columns, the input width), shape[1] the rows.
  // Unused dims are 1.
  std::array<int64_t, 4> shape{1, 1, 1, 1};
  int rank = 1;
  std::span<const std::byte> data;  // row_bytes(type, shape[0]) * rows bytes, checked by the loader

  int64_t cols() const { return shape[0]; }
  int64_t rows() const { return shape[1] * shape[2] * shape[3]; }
  // As many as data has, where it is known.
  size_t bytes() const {
    return row_bytes(type, static_cast<size_t>(cols())) * static_cast<size_t>(rows());
  }
};

}  // namespace octavo
