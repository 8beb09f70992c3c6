// Weights as a file stores them -> P16 panels, and one row back out. Bits per weight stay (almost)
// the same.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernels/api.h"
#include "tensor/aligned_buffer.h"
#include "tensor/tensor_view.h"

namespace octavo::kernels {

size_t panel_bytes(DType type, int64_t cols);

class PackedMatrix {
 public:
  PackedMatrix() = default;
  // Room for a matrix of this shape; panels are filled by pack_panel, by several threads if wanted.
  static Result<PackedMatrix> allocate(DType type, int64_t rows, int64_t cols);

  PanelMatrix view() const { return view_; }
  bool empty() const { return view_.data == nullptr; }

  // Repacks rows [16*panel, 16*panel + 16) of source, the same matrix in file layout.
  // REQUIRES: source's type, rows and cols are those given to allocate().
  void pack_panel(int64_t panel, const TensorView& source);

 private:
  PanelMatrix view_;
  AlignedBuffer buffer_;
};

// Row `row` as floats, exactly as dequantize_row would give it from the file. out: cols floats.
void unpack_row(const PanelMatrix& w, int64_t row, float* out);

}  // namespace octavo::kernels
