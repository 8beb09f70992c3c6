// Weights as a file stores them -> P16 panels (weight packing), and one row back out. Bits per
// weight stay (almost) the same.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "kernels/api.h"
#include "tensor/aligned_buffer.h"
#include "tensor/tensor_view.h"

namespace octavo::kernels {

size_t panel_bytes(DType type, int64_t cols);

// Of all panels of a matrix. Errors: corrupt_file (no matrix of this type has such a shape),
// resource_exhausted (2^64 bytes or more).
Result<uint64_t> packed_bytes(DType type, int64_t rows, int64_t cols);

class PackedMatrix {
 public:
  PackedMatrix() = default;
  // Room for a matrix of this shape; panels are filled by pack_panel, by several threads if wanted.
  static Result<PackedMatrix> allocate(DType type, int64_t rows, int64_t cols);
  // The same in memory of somebody else, of exactly packed_bytes() and aligned to 64, which must
  // outlive the result. Errors: as over().
  static Result<PackedMatrix> in(DType type, int64_t rows, int64_t cols,
                                 std::span<std::byte> memory);
  // Panels made before and kept elsewhere, which must outlive the result; nothing is copied.
  // Errors: as packed_bytes(); corrupt_file (panels has another size or is not aligned to 64).
  static Result<PackedMatrix> over(DType type, int64_t rows, int64_t cols,
                                   std::span<const std::byte> panels);

  PanelMatrix view() const { return view_; }
  bool empty() const { return view_.data == nullptr; }

  // Repacks rows [16*panel, 16*panel + 16) of source, the same matrix in file layout.
  // REQUIRES: source's type, rows and cols are those given to allocate() or in(); not made by
  // over().
  void pack_panel(int64_t panel, const TensorView& source);

 private:
  PanelMatrix view_;
  uint8_t* panels_ = nullptr;  // where to pack to
  AlignedBuffer buffer_;       // empty if the panels are somebody else's
};

// Row `row` as floats, exactly as dequantize_row would give it from the file. out: cols floats.
void unpack_row(const PanelMatrix& w, int64_t row, float* out);

}  // namespace octavo::kernels
