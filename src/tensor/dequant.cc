#include "tensor/dequant.h"

#include <cstring>

#include "tensor/blocks.h"
#include "tensor/half.h"

namespace octavo {
namespace {

// Value i < 2n of n nibble-pair bytes.
int nibble(const uint8_t* bytes, int i, int n) { return i < n ? bytes[i] & 15 : bytes[i - n] >> 4; }

int bit(const uint8_t* bytes, int i) { return (bytes[i / 8] >> (i % 8)) & 1; }

// Value i of the two-bit fields of Q2_K, Q3_K and (as high bits) Q6_K.
int crumb(const uint8_t* bytes, int i) {
  return (bytes[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
}

void unpack(const BlockQ4_0& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < kSmallBlock; ++i)
    dst[i] = d * static_cast<float>(nibble(block.qs, i, 16) - 8);
}

void unpack(const BlockQ4_1& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const float m = f16_to_f32(block.m);
  for (int i = 0; i < kSmallBlock; ++i)
    dst[i] = d * static_cast<float>(nibble(block.qs, i, 16)) + m;
}

// The sums and the product are exact, so that they are the kernels' d * q - d * z to the bit.
void unpack(const BlockQ4_Z& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < kSmallBlock; ++i)
    dst[i] = d * static_cast<float>(nibble(block.qs, i, 16)) - d * static_cast<float>(block.z);
}

void unpack(const BlockQ5_0& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < kSmallBlock; ++i) {
    const int q = nibble(block.qs, i, 16) | bit(block.qh, i) << 4;
    dst[i] = d * static_cast<float>(q - 16);
  }
}

void unpack(const BlockQ5_1& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const float m = f16_to_f32(block.m);
  for (int i = 0; i < kSmallBlock; ++i) {
    const int q = nibble(block.qs, i, 16) | bit(block.qh, i) << 4;
    dst[i] = d * static_cast<float>(q) + m;
  }
}

void unpack(const BlockQ8_0& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < kSmallBlock; ++i) dst[i] = d * static_cast<float>(block.qs[i]);
}

void unpack(const BlockQ2_K& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int i = 0; i < kSuperBlock; ++i) {
    const int scale = block.scales[i / 16];
    const float group_d = d * static_cast<float>(scale & 15);
    const float group_m = dmin * static_cast<float>(scale >> 4);
    dst[i] = group_d * static_cast<float>(crumb(block.qs, i)) - group_m;
  }
}

void unpack(const BlockQ3_K& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < kSuperBlock; ++i) {
    const float group_d = d * static_cast<float>(q3_k_scale(block.scales, i / 16));
    const int high = (block.hmask[i % 32] >> (i / 32)) & 1;
    dst[i] = group_d * static_cast<float>(crumb(block.qs, i) - (high ? 0 : 4));
  }
}

void unpack(const BlockQ4_K& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int i = 0; i < kSuperBlock; ++i) {
    const ScaleMin group = k_scale_min(block.scales, i / 32);
    const float group_d = d * static_cast<float>(group.scale);
    const float group_m = dmin * static_cast<float>(group.min);
    const int q = nibble(block.qs + i / 64 * 32, i % 64, 32);
    dst[i] = group_d * static_cast<float>(q) - group_m;
  }
}

void unpack(const BlockQ5_K& block, float* dst) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  for (int i = 0; i < kSuperBlock; ++i) {
    const ScaleMin group = k_scale_min(block.scales, i / 32);
    const float group_d = d * static_cast<float>(group.scale);
    const float group_m = dmin * static_cast<float>(group.min);
    const int high = (block.qh[i % 32] >> (i / 32)) & 1;
    const int q = nibble(block.qs + i / 64 * 32, i % 64, 32) | high << 4;
    dst[i] = group_d * static_cast<float>(q) - group_m;
  }
}

void unpack(const BlockQ6_K& block, float* dst) {
  const float d = f16_to_f32(block.d);
  for (int i = 0; i < kSuperBlock; ++i) {
    const float group_d = d * static_cast<float>(block.scales[i / 16]);
    const int q = nibble(block.ql + i / 128 * 64, i % 128, 64) | crumb(block.qh, i) << 4;
    dst[i] = group_d * static_cast<float>(q - 32);
  }
}

// The block is copied first: rows start at any byte.
template <class Block, int kElements>
void unpack_row(const std::byte* src, float* dst, int64_t n) {
  for (int64_t i = 0; i < n / kElements; ++i) {
    Block block;
    std::memcpy(&block, src + i * static_cast<int64_t>(sizeof(Block)), sizeof(Block));
    unpack(block, dst + i * kElements);
  }
}

template <float (*kConvert)(uint16_t)>
void widen_row(const std::byte* src, float* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    uint16_t half;
    std::memcpy(&half, src + i * 2, sizeof(half));
    dst[i] = kConvert(half);
  }
}

}  // namespace

void dequantize_row(DType type, const std::byte* src, float* dst, int64_t n) {
  switch (type) {
    case DType::f32:
      if (n > 0) std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::f16:
      return widen_row<f16_to_f32>(src, dst, n);
    case DType::bf16:
      return widen_row<bf16_to_f32>(src, dst, n);
    case DType::q4_0:
      return unpack_row<BlockQ4_0, kSmallBlock>(src, dst, n);
    case DType::q4_1:
      return unpack_row<BlockQ4_1, kSmallBlock>(src, dst, n);
    case DType::q5_0:
      return unpack_row<BlockQ5_0, kSmallBlock>(src, dst, n);
    case DType::q5_1:
      return unpack_row<BlockQ5_1, kSmallBlock>(src, dst, n);
    case DType::q8_0:
      return unpack_row<BlockQ8_0, kSmallBlock>(src, dst, n);
    case DType::q2_k:
      return unpack_row<BlockQ2_K, kSuperBlock>(src, dst, n);
    case DType::q3_k:
      return unpack_row<BlockQ3_K, kSuperBlock>(src, dst, n);
    case DType::q4_k:
      return unpack_row<BlockQ4_K, kSuperBlock>(src, dst, n);
    case DType::q5_k:
      return unpack_row<BlockQ5_K, kSuperBlock>(src, dst, n);
    case DType::q6_k:
      return unpack_row<BlockQ6_K, kSuperBlock>(src, dst, n);
    case DType::q4_z:
      return unpack_row<BlockQ4_Z, kSmallBlock>(src, dst, n);
  }
}

}  // namespace octavo
