// Blocks of 32: a scale from the extreme values, and each value rounded on its own.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/half.h"
#include "tensor/quantize_blocks.h"

namespace octavo {
namespace {

// 1 / d. No scale: every value of the block gets the code of zero.
float inverse(float d) { return d != 0.0f ? 1.0f / d : 0.0f; }

// The value farthest from zero, with its sign; the first one of several.
float extreme(const float* values) {
  float found = 0;
  for (int i = 0; i < kSmallBlock; ++i)
    if (std::fabs(values[i]) > std::fabs(found)) found = values[i];
  return found;
}

// x without its fraction, at most `highest`. The scale of a block of denormal numbers has an
// infinite inverse; such values are zero in the end, whatever their codes.
int code(float x, int highest) {
  return std::isfinite(x) ? std::clamp(static_cast<int>(x), 0, highest) : 0;
}

// Codes of x = d * (q - middle). The extreme value is the one that gets code 0.
struct Centred {
  float d;
  int codes[kSmallBlock];
};

Centred centred_codes(const float* values, int middle) {
  Centred result;
  result.d = extreme(values) / static_cast<float>(-middle);
  const float scale = inverse(result.d), offset = static_cast<float>(middle) + 0.5f;
  for (int i = 0; i < kSmallBlock; ++i)
    result.codes[i] = code(values[i] * scale + offset, 2 * middle - 1);
  return result;
}

// Codes of x = d * q + m.
struct Affine {
  float d, m;
  int codes[kSmallBlock];
};

Affine affine_codes(const float* values, int highest) {
  // The first of each, which matters to the sign of zeros.
  const float high = *std::max_element(values, values + kSmallBlock);
  Affine result;
  result.m = *std::min_element(values, values + kSmallBlock);
  result.d = (high - result.m) / static_cast<float>(highest);
  const float scale = inverse(result.d);
  for (int i = 0; i < kSmallBlock; ++i)
    result.codes[i] = code((values[i] - result.m) * scale + 0.5f, highest);
  return result;
}

void store_nibbles(const int* codes, uint8_t (&qs)[16]) {
  for (int i = 0; i < 16; ++i)
    qs[i] = static_cast<uint8_t>((codes[i] & 15) | (codes[i + 16] & 15) << 4);
}

void store_high_bits(const int* codes, uint8_t (&qh)[4]) {
  std::memset(qh, 0, sizeof(qh));
  for (int i = 0; i < kSmallBlock; ++i)
    qh[i / 8] = static_cast<uint8_t>(qh[i / 8] | ((codes[i] >> 4) & 1) << (i % 8));
}

}  // namespace

void encode(const float* values, BlockQ4_0& block) {
  const Centred result = centred_codes(values, 8);
  block.d = f32_to_f16(result.d);
  store_nibbles(result.codes, block.qs);
}

void encode(const float* values, BlockQ5_0& block) {
  const Centred result = centred_codes(values, 16);
  block.d = f32_to_f16(result.d);
  store_high_bits(result.codes, block.qh);
  store_nibbles(result.codes, block.qs);
}

void encode(const float* values, BlockQ4_1& block) {
  const Affine result = affine_codes(values, 15);
  block.d = f32_to_f16(result.d);
  block.m = f32_to_f16(result.m);
  store_nibbles(result.codes, block.qs);
}

void encode(const float* values, BlockQ5_1& block) {
  const Affine result = affine_codes(values, 31);
  block.d = f32_to_f16(result.d);
  block.m = f32_to_f16(result.m);
  store_high_bits(result.codes, block.qh);
  store_nibbles(result.codes, block.qs);
}

void encode(const float* values, BlockQ8_0& block) {
  constexpr float kHighest = 127;
  const float d = std::fabs(extreme(values)) / kHighest;
  const float scale = inverse(d);
  block.d = f32_to_f16(d);
  for (int i = 0; i < kSmallBlock; ++i) {
    const float x = values[i] * scale;
    block.qs[i] = std::isfinite(x)
                      ? static_cast<int8_t>(std::round(std::clamp(x, -kHighest, kHighest)))
                      : int8_t{0};
  }
}

}  // namespace octavo
