#include "tensor/quantize.h"

#include <cstring>

#include "tensor/half.h"
#include "tensor/quantize_blocks.h"

namespace octavo {
namespace {

template <class Block, int kElements>
void encode_row(const float* src, std::byte* dst, int64_t n) {
  for (int64_t i = 0; i < n / kElements; ++i) {
    Block block;
    encode(src + i * kElements, block);
    std::memcpy(dst + i * static_cast<int64_t>(sizeof(Block)), &block, sizeof(Block));
  }
}

template <uint16_t (*kConvert)(float)>
void narrow_row(const float* src, std::byte* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t half = kConvert(src[i]);
    std::memcpy(dst + i * 2, &half, sizeof(half));
  }
}

}  // namespace

bool can_quantize_to(DType type) {
  return type != DType::q2_k && type != DType::q3_k && type != DType::q4_z;
}

void quantize_row(DType type, const float* src, std::byte* dst, int64_t n) {
  switch (type) {
    case DType::f32:
      if (n > 0) std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
      return;
    case DType::f16:
      return narrow_row<f32_to_f16>(src, dst, n);
    case DType::bf16:
      return narrow_row<f32_to_bf16>(src, dst, n);
    case DType::q4_0:
      return encode_row<BlockQ4_0, kSmallBlock>(src, dst, n);
    case DType::q4_1:
      return encode_row<BlockQ4_1, kSmallBlock>(src, dst, n);
    case DType::q5_0:
      return encode_row<BlockQ5_0, kSmallBlock>(src, dst, n);
    case DType::q5_1:
      return encode_row<BlockQ5_1, kSmallBlock>(src, dst, n);
    case DType::q8_0:
      return encode_row<BlockQ8_0, kSmallBlock>(src, dst, n);
    case DType::q4_k:
      return encode_row<BlockQ4_K, kSuperBlock>(src, dst, n);
    case DType::q5_k:
      return encode_row<BlockQ5_K, kSuperBlock>(src, dst, n);
    case DType::q6_k:
      return encode_row<BlockQ6_K, kSuperBlock>(src, dst, n);
    case DType::q2_k:
    case DType::q3_k:
    case DType::q4_z:
      return;
  }
}

}  // namespace octavo
