#include "kernels/panel_reader.h"

#include <cstring>

#include "kernels/panel_layout.h"
#include "tensor/half.h"

namespace octavo::kernels {
namespace {

// Code of input i (0..31) of row r in a block's planes.
int read_code(const PanelLayout& l, const uint8_t* block, int r, int i) {
  const int line = i / 4;
  const int at = 4 * r + i % 4;
  if (l.plane4 < 0 && l.plane2 < 0) return static_cast<int8_t>(block[64 * line + at]);
  int code = 0;
  if (l.plane4 >= 0) code |= (block[l.plane4 + 64 * (line % 4) + at] >> (line / 4 * 4)) & 15;
  if (l.plane2 >= 0)
    code |= ((block[l.plane2 + 64 * (line / 4) + at] >> (line % 4 * 2)) & 3) << l.shift2;
  if (l.plane1 >= 0) code |= ((block[l.plane1 + at] >> line) & 1) << l.shift1;
  return code;
}

float get_half(const uint8_t* at, int r) {
  uint16_t value;
  std::memcpy(&value, at + 2 * r, 2);
  return f16_to_f32(value);
}

struct Affine {  // w = d * (c - offset) + m
  float d;
  float m;
};

// Scale of input i of row r in a block, by the formula of its kind (panel_layout.h).
Affine read_scale(const PanelLayout& l, const uint8_t* sub, const uint8_t* super, int r, int i) {
  const int half = i / 16;
  switch (l.scales) {
    case ScaleKind::d:
      return {get_half(sub, r), 0};
    case ScaleKind::d_m:
      return {get_half(sub, r), get_half(sub + 32, r)};
    case ScaleKind::d_z:
      return {get_half(sub, r), -(get_half(sub, r) * static_cast<float>(sub[32 + r]))};
    case ScaleKind::k_sub32:
      return {get_half(super, r) * static_cast<float>(sub[r]),
              -(get_half(super + 32, r) * static_cast<float>(sub[16 + r]))};
    case ScaleKind::k_sub16:
      return {get_half(super, r) * static_cast<float>(static_cast<int8_t>(sub[half * 16 + r])), 0};
    case ScaleKind::k_sub16_min:
      return {get_half(super, r) * static_cast<float>(sub[half * 16 + r] & 15),
              -(get_half(super + 32, r) * static_cast<float>(sub[half * 16 + r] >> 4))};
    case ScaleKind::none:
      break;
  }
  return {};
}

bool has_min(ScaleKind kind) {
  return kind == ScaleKind::d_m || kind == ScaleKind::d_z || kind == ScaleKind::k_sub32 ||
         kind == ScaleKind::k_sub16_min;
}

}  // namespace

RowBlock read_row_block(const PanelMatrix& w, int64_t row, int64_t block) {
  const PanelLayout& l = kPanelLayouts[static_cast<size_t>(w.type)];
  const int64_t blocks = w.cols / kBlock;
  const uint8_t* codes = w.data + static_cast<size_t>(row / kPanelRows) * w.panel_bytes;
  const uint8_t* sub = codes + blocks * l.code_bytes;
  const uint8_t* super = sub + blocks * l.sub_bytes;
  const int r = static_cast<int>(row % kPanelRows);
  RowBlock out;
  for (int i = 0; i < kBlock; ++i)
    out.codes[static_cast<size_t>(i)] = read_code(l, codes + block * l.code_bytes, r, i) - l.offset;
  for (int half = 0; half < 2; ++half) {
    const Affine a =
        read_scale(l, sub + block * l.sub_bytes, super + block / 8 * l.super_bytes, r, half * 16);
    out.d[half] = a.d;
    out.m[half] = a.m;
  }
  out.has_min = has_min(l.scales);
  return out;
}

}  // namespace octavo::kernels
