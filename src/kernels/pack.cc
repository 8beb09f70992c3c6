#include "kernels/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checked.h"
#include "kernels/panel_layout.h"
#include "kernels/panel_reader.h"
#include "tensor/blocks.h"
#include "tensor/half.h"

namespace octavo::kernels {
namespace {

constexpr int kLines = 8;  // lines of 64 bytes in a block of 32 inputs

const PanelLayout& layout(DType type) { return kPanelLayouts[static_cast<size_t>(type)]; }

// ---- One block of 32 inputs of one row: its codes, unsigned and one per byte (q8_0: signed).
// b is the block's number inside the 256 values of a k-quant.

void nibble_codes(const uint8_t* qs, uint8_t* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = qs[i] & 15;
    out[16 + i] = qs[i] >> 4;
  }
}

// Bit i of qh becomes bit 4 of code i, four codes at a time: the product puts four neighbouring
// bits at the bottoms of four bytes.
void add_fifth_bits(const uint8_t (&qh)[4], uint8_t* out) {
  uint32_t bits;
  std::memcpy(&bits, qh, 4);
  for (int line = 0; line < kLines; ++line) {
    uint32_t word;
    std::memcpy(&word, out + 4 * line, 4);
    word |= ((bits >> (4 * line) & 15) * 0x00204081u & 0x01010101u) << 4;
    std::memcpy(out + 4 * line, &word, 4);
  }
}

void codes(const BlockQ4_0& block, int, uint8_t* out) { nibble_codes(block.qs, out); }
void codes(const BlockQ4_1& block, int, uint8_t* out) { nibble_codes(block.qs, out); }

void codes(const BlockQ4_Z& block, int, uint8_t* out) { nibble_codes(block.qs, out); }

void codes(const BlockQ5_0& block, int, uint8_t* out) {
  nibble_codes(block.qs, out);
  add_fifth_bits(block.qh, out);
}

void codes(const BlockQ5_1& block, int, uint8_t* out) {
  nibble_codes(block.qs, out);
  add_fifth_bits(block.qh, out);
}

void codes(const BlockQ8_0& block, int, uint8_t* out) { std::memcpy(out, block.qs, 32); }

void codes(const BlockQ2_K& block, int b, uint8_t* out) {
  for (int i = 0; i < 32; ++i) out[i] = (block.qs[b / 4 * 32 + i] >> (b % 4 * 2)) & 3;
}

void codes(const BlockQ3_K& block, int b, uint8_t* out) {
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<uint8_t>(((block.qs[b / 4 * 32 + i] >> (b % 4 * 2)) & 3) |
                                  ((block.hmask[i] >> b) & 1) << 2);
}

void codes(const BlockQ4_K& block, int b, uint8_t* out) {
  for (int i = 0; i < 32; ++i) out[i] = (block.qs[b / 2 * 32 + i] >> (b % 2 * 4)) & 15;
}

void codes(const BlockQ5_K& block, int b, uint8_t* out) {
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<uint8_t>(((block.qs[b / 2 * 32 + i] >> (b % 2 * 4)) & 15) |
                                  ((block.qh[i] >> b) & 1) << 4);
}

void codes(const BlockQ6_K& block, int b, uint8_t* out) {
  const int half = b / 4;
  const int s = b % 4;
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<uint8_t>(((block.ql[half * 64 + s % 2 * 32 + i] >> (s / 2 * 4)) & 15) |
                                  ((block.qh[half * 32 + i] >> (s * 2)) & 3) << 4);
}

// ---- The scales of that block, into the panel's arrays at row r.

void put_half(uint8_t* at, int r, uint16_t value) { std::memcpy(at + 2 * r, &value, 2); }

struct ScaleSlots {
  uint8_t* sub;    // of this block
  uint8_t* super;  // of this block's 256 inputs
  int r;
};

template <class Block>
void scales(const Block& block, int, ScaleSlots to) requires requires {
  block.m;
}
{
  put_half(to.sub, to.r, block.d);
  put_half(to.sub + 32, to.r, block.m);
}

template <class Block>
void scales(const Block& block, int, ScaleSlots to) {
  put_half(to.sub, to.r, block.d);
}

void scales(const BlockQ4_Z& block, int, ScaleSlots to) {
  put_half(to.sub, to.r, block.d);
  to.sub[32 + to.r] = block.z;
}

template <class Block>
void scales_k_sub32(const Block& block, int b, ScaleSlots to) {
  const ScaleMin group = k_scale_min(block.scales, b);
  to.sub[to.r] = static_cast<uint8_t>(group.scale);
  to.sub[16 + to.r] = static_cast<uint8_t>(group.min);
  put_half(to.super, to.r, block.d);
  put_half(to.super + 32, to.r, block.dmin);
}

void scales(const BlockQ4_K& block, int b, ScaleSlots to) { scales_k_sub32(block, b, to); }
void scales(const BlockQ5_K& block, int b, ScaleSlots to) { scales_k_sub32(block, b, to); }

void scales(const BlockQ2_K& block, int b, ScaleSlots to) {
  for (int half = 0; half < 2; ++half) to.sub[half * 16 + to.r] = block.scales[2 * b + half];
  put_half(to.super, to.r, block.d);
  put_half(to.super + 32, to.r, block.dmin);
}

void scales(const BlockQ3_K& block, int b, ScaleSlots to) {
  for (int half = 0; half < 2; ++half)
    to.sub[half * 16 + to.r] = static_cast<uint8_t>(q3_k_scale(block.scales, 2 * b + half));
  put_half(to.super, to.r, block.d);
}

void scales(const BlockQ6_K& block, int b, ScaleSlots to) {
  for (int half = 0; half < 2; ++half)
    to.sub[half * 16 + to.r] = static_cast<uint8_t>(block.scales[2 * b + half]);
  put_half(to.super, to.r, block.d);
}

// ---- One row's codes -> its four bytes of each line of the planes.

using RowWords = std::array<uint32_t, kLines>;  // four codes each

void put_word(uint8_t* plane, int line, int r, uint32_t word) {
  std::memcpy(plane + 64 * line + 4 * r, &word, 4);
}

inline void write_row(const PanelLayout& l, const RowWords& w, int r, uint8_t* out) {
  if (l.plane4 < 0 && l.plane2 < 0)
    for (int line = 0; line < kLines; ++line) put_word(out, line, r, w[line]);
  if (l.plane4 >= 0)
    for (int j = 0; j < 4; ++j)
      put_word(out + l.plane4, j, r, (w[j] & 0x0f0f0f0fu) | (w[4 + j] & 0x0f0f0f0fu) << 4);
  if (l.plane2 >= 0)
    for (int h = 0; h < 2; ++h) {
      uint32_t packed = 0;
      for (int g = 0; g < 4; ++g) packed |= (w[4 * h + g] >> l.shift2 & 0x03030303u) << 2 * g;
      put_word(out + l.plane2, h, r, packed);
    }
  if (l.plane1 >= 0) {
    uint32_t packed = 0;
    for (int g = 0; g < kLines; ++g) packed |= (w[g] >> l.shift1 & 0x01010101u) << g;
    put_word(out + l.plane1, 0, r, packed);
  }
}

struct PanelParts {
  uint8_t* codes;
  uint8_t* sub;
  uint8_t* super;
};

PanelParts parts(DType type, int64_t cols, uint8_t* panel) {
  const PanelLayout& l = layout(type);
  const int64_t blocks = cols / kBlock;
  uint8_t* sub = panel + blocks * l.code_bytes;
  return {panel, sub, sub + blocks * l.sub_bytes};
}

template <DType kType, class Block, int kElements>
void pack_quantised(const TensorView& source, int64_t first_row, uint8_t* panel) {
  constexpr PanelLayout l = kPanelLayouts[static_cast<size_t>(kType)];
  const PanelParts to = parts(kType, source.cols(), panel);
  const int rows = static_cast<int>(std::min<int64_t>(kPanelRows, source.rows() - first_row));
  const size_t bytes_per_row = row_bytes(kType, static_cast<size_t>(source.cols()));
  const std::byte* from = source.data.data() + static_cast<size_t>(first_row) * bytes_per_row;
  // The sixteen rows lie one after the other: asked for in that order they arrive sooner than in
  // the order of the blocks below.
  for (size_t at = 0; at < static_cast<size_t>(rows) * bytes_per_row; at += 64)
    __builtin_prefetch(from + at);
  constexpr int kBlocksPer = kElements / kBlock;
  for (int64_t stored = 0; stored < source.cols() / kElements; ++stored)
    for (int r = 0; r < rows; ++r) {
      Block block;
      std::memcpy(&block, from + r * bytes_per_row + stored * sizeof(Block), sizeof(Block));
      for (int part = 0; part < kBlocksPer; ++part) {
        const int64_t b = stored * kBlocksPer + part;
        RowWords words;
        codes(block, part, reinterpret_cast<uint8_t*>(words.data()));
        write_row(l, words, r, to.codes + b * l.code_bytes);
        scales(block, part, {to.sub + b * l.sub_bytes, to.super + stored * l.super_bytes, r});
      }
    }
}

// Where input k of row r lies in a plain panel: `together` inputs of a row side by side.
int64_t plain_index(int64_t k, int r, int together) {
  return (k / together * kPanelRows + r) * together + k % together;
}

template <class Value, int kTogether = 1>
void pack_plain(const TensorView& source, int64_t first_row, uint8_t* panel) {
  const int rows = static_cast<int>(std::min<int64_t>(kPanelRows, source.rows() - first_row));
  const int64_t cols = source.cols();
  const std::byte* from =
      source.data.data() + static_cast<size_t>(first_row * cols) * sizeof(Value);
  for (int r = 0; r < rows; ++r)
    for (int64_t k = 0; k < cols; ++k)
      std::memcpy(panel + plain_index(k, r, kTogether) * static_cast<int64_t>(sizeof(Value)),
                  from + static_cast<size_t>(r * cols + k) * sizeof(Value), sizeof(Value));
}

template <class Value, int kTogether = 1, class Convert>
void unpack_plain(const uint8_t* panel, int r, int64_t cols, Convert convert, float* out) {
  for (int64_t k = 0; k < cols; ++k) {
    Value value;
    std::memcpy(&value, panel + plain_index(k, r, kTogether) * static_cast<int64_t>(sizeof(Value)),
                sizeof(Value));
    out[k] = convert(value);
  }
}

}  // namespace

size_t panel_bytes(DType type, int64_t cols) {
  const PanelLayout& l = layout(type);
  if (l.scales == ScaleKind::none)
    return static_cast<size_t>(type == DType::bf16 ? (cols + 1) / 2 * 2 : cols) *
           static_cast<size_t>(l.code_bytes);
  const auto blocks = static_cast<size_t>(cols / kBlock);
  const size_t used = blocks * static_cast<size_t>(l.code_bytes + l.sub_bytes) +
                      blocks / 8 * static_cast<size_t>(l.super_bytes);
  return (used + 63) / 64 * 64;
}

Result<uint64_t> packed_bytes(DType type, int64_t rows, int64_t cols) {
  if (rows < 1 || cols < 1 || cols % info(type).block_elements != 0)
    return fail(ErrorCode::corrupt_file, fmt::format("a {} matrix cannot have {} rows of {} values",
                                                     name(type), rows, cols));
  const PanelMatrix shape{type, rows, cols, panel_bytes(type, cols), nullptr};
  const auto bytes = checked_mul(static_cast<uint64_t>(shape.panels()), shape.panel_bytes);
  if (bytes) return *bytes;
  return fail(ErrorCode::resource_exhausted,
              fmt::format("a matrix of {} x {} is too large", rows, cols));
}

Result<PackedMatrix> PackedMatrix::allocate(DType type, int64_t rows, int64_t cols) {
  OCTAVO_TRY(const uint64_t bytes, packed_bytes(type, rows, cols));
  PackedMatrix matrix;
  OCTAVO_TRY(matrix.buffer_, AlignedBuffer::allocate(bytes));
  matrix.panels_ = matrix.buffer_.data();
  matrix.view_ = {type, rows, cols, panel_bytes(type, cols), matrix.panels_};
  return matrix;
}

Result<PackedMatrix> PackedMatrix::in(DType type, int64_t rows, int64_t cols,
                                      std::span<std::byte> memory) {
  OCTAVO_TRY(PackedMatrix matrix, over(type, rows, cols, memory));
  matrix.panels_ = reinterpret_cast<uint8_t*>(memory.data());
  return matrix;
}

Result<PackedMatrix> PackedMatrix::over(DType type, int64_t rows, int64_t cols,
                                        std::span<const std::byte> panels) {
  OCTAVO_TRY(const uint64_t bytes, packed_bytes(type, rows, cols));
  if (panels.size() != bytes || reinterpret_cast<uintptr_t>(panels.data()) % 64 != 0)
    return fail(ErrorCode::corrupt_file,
                fmt::format("panels of a {} matrix of {} x {} have {} bytes, or lie badly",
                            name(type), rows, cols, panels.size()));
  PackedMatrix matrix;
  matrix.view_ = {type, rows, cols, panel_bytes(type, cols),
                  reinterpret_cast<const uint8_t*>(panels.data())};
  return matrix;
}

void PackedMatrix::pack_panel(int64_t panel, const TensorView& source) {
  uint8_t* to = panels_ + static_cast<size_t>(panel) * view_.panel_bytes;
  const int64_t row = panel * kPanelRows;
  const DType type = view_.type;
  switch (type) {
    case DType::f32:
      return pack_plain<uint32_t>(source, row, to);
    case DType::f16:
      return pack_plain<uint16_t>(source, row, to);
    case DType::bf16:
      return pack_plain<uint16_t, 2>(source, row, to);
    case DType::q4_0:
      return pack_quantised<DType::q4_0, BlockQ4_0, 32>(source, row, to);
    case DType::q4_1:
      return pack_quantised<DType::q4_1, BlockQ4_1, 32>(source, row, to);
    case DType::q5_0:
      return pack_quantised<DType::q5_0, BlockQ5_0, 32>(source, row, to);
    case DType::q5_1:
      return pack_quantised<DType::q5_1, BlockQ5_1, 32>(source, row, to);
    case DType::q8_0:
      return pack_quantised<DType::q8_0, BlockQ8_0, 32>(source, row, to);
    case DType::q2_k:
      return pack_quantised<DType::q2_k, BlockQ2_K, 256>(source, row, to);
    case DType::q3_k:
      return pack_quantised<DType::q3_k, BlockQ3_K, 256>(source, row, to);
    case DType::q4_k:
      return pack_quantised<DType::q4_k, BlockQ4_K, 256>(source, row, to);
    case DType::q5_k:
      return pack_quantised<DType::q5_k, BlockQ5_K, 256>(source, row, to);
    case DType::q6_k:
      return pack_quantised<DType::q6_k, BlockQ6_K, 256>(source, row, to);
    case DType::q4_z:
      return pack_quantised<DType::q4_z, BlockQ4_Z, 32>(source, row, to);
  }
}

void unpack_row(const PanelMatrix& w, int64_t row, float* out) {
  const uint8_t* panel = w.data + static_cast<size_t>(row / kPanelRows) * w.panel_bytes;
  const int r = static_cast<int>(row % kPanelRows);
  if (w.type == DType::f32)
    return unpack_plain<float>(
        panel, r, w.cols, [](float v) { return v; }, out);
  if (w.type == DType::f16) return unpack_plain<uint16_t>(panel, r, w.cols, f16_to_f32, out);
  if (w.type == DType::bf16) return unpack_plain<uint16_t, 2>(panel, r, w.cols, bf16_to_f32, out);

  for (int64_t b = 0; b < w.cols / kBlock; ++b) {
    const RowBlock block = read_row_block(w, row, b);
    for (int i = 0; i < kBlock; ++i) {
      const float product =
          block.d[i / 16] * static_cast<float>(block.codes[static_cast<size_t>(i)]);
      *out++ = block.has_min ? product + block.m[i / 16] : product;
    }
  }
}

}  // namespace octavo::kernels
