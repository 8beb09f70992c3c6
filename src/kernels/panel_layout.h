// The bytes of a panel: 16 output rows by all inputs, in blocks of 32 inputs.
//
// A panel is three arrays, one after the other:
//   codes[blocks][code_bytes]   unsigned codes (q8_0: signed), as "lines" of 64 bytes
//   sub[blocks][sub_bytes]      scales (and minima) of each block
//   super[blocks/8][super_bytes] k-quants: scale of the scales
// A line holds 16 rows x 4 consecutive inputs: byte 4*row + i is input 4*line + i; a block has 8
// lines. Narrow codes share bytes between lines so that unpacking is a shift and a mask:
//   4-bit plane, 256 bytes: byte 64*j + b = line j (low nibble) and line j+4 (high nibble), j < 4
//   2-bit plane, 128 bytes: byte 64*h + b = lines 4h, 4h+1, 4h+2, 4h+3 at bits 0, 2, 4, 6
//   1-bit plane,  64 bytes: bit g of byte b = line g
// f32 and f16 panels are plain: [cols][16 rows]; bf16 panels have pairs of inputs side by side, as
// the bf16 dot product takes them: [cols/2][16 rows][2].
#pragma once

#include "kernels/api.h"

namespace octavo::kernels {

// Panels are kept on disk from one start to the next. Whoever changes a byte of a panel adds one
// here, so that old ones are not used; a test in pack_test.cc holds the bytes of each type against
// this number.
inline constexpr uint32_t kPanelLayoutVersion = 1;

enum class ScaleKind : uint8_t {
  none,         // floating-point weights
  d,            // sub: f16 d[16]                             w = d * (c - offset)
  d_m,          // sub: f16 d[16], m[16]                      w = d * c + m
  d_z,          // sub: f16 d[16], u8 z[16]                       w = d * c - d * z
  k_sub32,      // sub: u8 sc[16], mn[16]; super: f16 d[16], dmin[16]        w = d*sc * c - dmin*mn
  k_sub16,      // sub: i8 sc[2][16];      super: f16 d[16]                  w = d*sc * (c - offset)
  k_sub16_min,  // sub: u8 (sc | mn<<4)[2][16]; super: f16 d[16], dmin[16]   w = d*sc * c - dmin*mn
};

struct PanelLayout {
  ScaleKind scales;
  int offset;  // subtracted from the code
  int plane4;  // byte offset of each plane inside a block's codes, -1 if absent
  int plane2;
  int plane1;
  int shift2;  // where the 2-bit and 1-bit planes go in the code
  int shift1;
  int code_bytes;  // per block; per input for the floating types
  int sub_bytes;
  int super_bytes;
};

// Indexed by DType.
constexpr PanelLayout kPanelLayouts[] = {
    /* f32  */ {ScaleKind::none, 0, -1, -1, -1, 0, 0, 64, 0, 0},
    /* f16  */ {ScaleKind::none, 0, -1, -1, -1, 0, 0, 32, 0, 0},
    /* bf16 */ {ScaleKind::none, 0, -1, -1, -1, 0, 0, 32, 0, 0},
    /* q4_0 */ {ScaleKind::d, 8, 0, -1, -1, 0, 0, 256, 32, 0},
    /* q4_1 */ {ScaleKind::d_m, 0, 0, -1, -1, 0, 0, 256, 64, 0},
    /* q5_0 */ {ScaleKind::d, 16, 0, -1, 256, 0, 4, 320, 32, 0},
    /* q5_1 */ {ScaleKind::d_m, 0, 0, -1, 256, 0, 4, 320, 64, 0},
    /* q8_0 */ {ScaleKind::d, 0, -1, -1, -1, 0, 0, 512, 32, 0},
    /* q2_k */ {ScaleKind::k_sub16_min, 0, -1, 0, -1, 0, 0, 128, 32, 64},
    /* q3_k */ {ScaleKind::k_sub16, 4, -1, 0, 128, 0, 2, 192, 32, 32},
    /* q4_k */ {ScaleKind::k_sub32, 0, 0, -1, -1, 0, 0, 256, 32, 64},
    /* q5_k */ {ScaleKind::k_sub32, 0, 0, -1, 256, 0, 4, 320, 32, 64},
    /* q6_k */ {ScaleKind::k_sub16, 32, 0, 256, -1, 4, 0, 384, 32, 32},
    /* q4_z */ {ScaleKind::d_z, 0, 0, -1, -1, 0, 0, 256, 48, 0},
};

}  // namespace octavo::kernels
