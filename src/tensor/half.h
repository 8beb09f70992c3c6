// Scalar conversions of the two 16-bit float formats: f16 (IEEE binary16) and bf16 (the upper half
// of an f32). Rounding is to nearest, ties to even; NaN stays NaN and becomes quiet, as F16C and
// AVX-512 do it.
//
// Functions are static and use compiler builtins: files compiled for different instruction sets
// include this header, and the linker must not pick one file's copy for all.
#pragma once

#include <cstdint>

namespace octavo {

static constexpr inline float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t magnitude = half & 0x7fffu;
  if (magnitude > 0x7c00u)  // NaN
    return __builtin_bit_cast(float, sign | 0x7fc00000u | (magnitude << 13));
  if (magnitude == 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u);
  if (magnitude >= 0x0400u)  // normal: move the exponent's bias from 15 to 127
    return __builtin_bit_cast(float, sign | ((magnitude << 13) + (112u << 23)));
  // Subnormal or zero: a multiple of 2^-24, exact in f32.
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, value));
}

static constexpr inline uint16_t f32_to_f16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)  // NaN
    return static_cast<uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u)  // 65520 and above round to infinity
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) {  // at least 2^-14: normal; a carry out of the mantissa is right
    const uint32_t rebiased = magnitude - (112u << 23);
    return static_cast<uint16_t>(sign | ((rebiased + 0xfffu + ((rebiased >> 13) & 1u)) >> 13));
  }
  if (magnitude <= 0x33000000u) return static_cast<uint16_t>(sign);  // at most 2^-25: zero
  const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  const uint32_t shift = 126u - (magnitude >> 23);  // to units of 2^-24; 14..24
  const uint32_t truncated = mantissa >> shift;
  const uint32_t rest = mantissa & ((1u << shift) - 1u);
  const uint32_t half_unit = 1u << (shift - 1u);
  const bool up = rest > half_unit || (rest == half_unit && (truncated & 1u) != 0);
  return static_cast<uint16_t>(sign | (truncated + (up ? 1u : 0u)));
}

static constexpr inline float bf16_to_f32(uint16_t half) {
  uint32_t bits = static_cast<uint32_t>(half) << 16;
  if ((bits & 0x7fffffffu) > 0x7f800000u) bits |= 0x00400000u;
  return __builtin_bit_cast(float, bits);
}

static constexpr inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace octavo
