// The quantised blocks of GGUF, byte for byte. Source: the GGUF specification and the files
// themselves.
//
// d, m and dmin are f16 (tensor/half.h). A "nibble pair" array of n bytes holds 2n values of 4
// bits: value i, i < n, is the low nibble of byte i, and value n + i is its high nibble. Functions
// are static for the reason given in half.h.
#pragma once

#include <cstdint>

namespace octavo {

constexpr int kSmallBlock = 32;   // values in a block of Q4_0 .. Q8_0
constexpr int kSuperBlock = 256;  // values in a block of the K types

// x = d * (q - 8)
struct BlockQ4_0 {
  uint16_t d;
  uint8_t qs[16];  // nibble pairs
};

// x = d * q + m
struct BlockQ4_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qs[16];  // nibble pairs
};

// x = d * (q - 16); bit 4 of value i is bit i of qh, read as a little-endian number
struct BlockQ5_0 {
  uint16_t d;
  uint8_t qh[4];
  uint8_t qs[16];  // nibble pairs: bits 0..3
};

// x = d * q + m; bits as in Q5_0
struct BlockQ5_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qh[4];
  uint8_t qs[16];
};

// x = d * q
struct BlockQ8_0 {
  uint16_t d;
  int8_t qs[32];
};

// 16 groups of 16 values: x = (d * low nibble of scales[g]) * q - dmin * high nibble of scales[g].
// Value 128 h + 32 s + i is bits 2s, 2s+1 of qs[32 h + i]  (h < 2, s < 4, i < 32).
struct BlockQ2_K {
  uint8_t scales[16];
  uint8_t qs[64];
  uint16_t d;
  uint16_t dmin;
};

// 16 groups of 16 values: x = (d * q3_k_scale(g)) * q, where q = low two bits, minus 4 if the high
// bit is CLEAR. Low bits as in Q2_K; the high bit of value 32 b + i is bit b of hmask[i]  (b < 8, i
// < 32).
struct BlockQ3_K {
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  uint16_t d;
};

// 8 groups of 32 values: x = (d * scale(g)) * q - dmin * min(g), both from k_scale_min().
// qs is four runs of 32 bytes, each the nibble pairs of 64 values.
struct BlockQ4_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};

// As Q4_K; bit 4 of value 32 g + i is bit g of qh[i].
struct BlockQ5_K {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};

// 16 groups of 16 values: x = (d * scales[g]) * (q - 32).
// In each half h of 128 values: ql[64 h ..] is the nibble pairs of 128 values (bits 0..3), and bits
// 4, 5 of value 128 h + 32 s + i are bits 2s, 2s+1 of qh[32 h + i].
struct BlockQ6_K {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;
};

// x = d * (q - z). Not a type of GGUF: what GPTQ and AWQ store, exactly. Q4_1 would round the
// product d * z to f16.
struct __attribute__((packed)) BlockQ4_Z {
  uint16_t d;
  uint8_t z;
  uint8_t qs[16];  // nibble pairs
};

static_assert(sizeof(BlockQ4_Z) == 19);
static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

// Scale of group g < 16 of a Q3_K block, -32..31: low four bits in bytes 0..7, high two bits in
// bytes 8..11.
static constexpr inline int q3_k_scale(const uint8_t (&scales)[12], int g) {
  const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
  const int high = (scales[8 + g % 4] >> (g / 4 * 2)) & 3;
  return (low | high << 4) - 32;
}

struct ScaleMin {
  int scale;
  int min;
};

// Six-bit scale and minimum of group g < 8 of a Q4_K or Q5_K block. Groups 0..3 use the low six
// bits of bytes g and g + 4; groups 4..7 have their low four bits in byte g + 4 and their high two
// in the top of those same bytes.
static constexpr inline ScaleMin k_scale_min(const uint8_t (&scales)[12], int g) {
  if (g < 4) return {scales[g] & 63, scales[g + 4] & 63};
  return {(scales[g + 4] & 15) | (scales[g - 4] >> 6) << 4, (scales[g + 4] >> 4) | (scales[g] >> 6)
                                                                                       << 4};
}

}  // namespace octavo
