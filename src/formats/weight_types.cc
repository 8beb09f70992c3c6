#include "formats/weight_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/blocks.h"
#include "tensor/half.h"

namespace octavo {
namespace {

constexpr int kBlock = 32;

template <class Block>
void put(std::byte* dst, int64_t index, const Block& block) {
  std::memcpy(dst + index * static_cast<int64_t>(sizeof(Block)), &block, sizeof(Block));
}

BlockQ8_0 round_q8_0(const float* values) {
  float largest = 0;
  for (int i = 0; i < kBlock; ++i) largest = std::max(largest, std::abs(values[i]));
  const float scale = largest / 127;
  const float inverse = scale != 0 ? 1 / scale : 0;
  BlockQ8_0 block{};
  block.d = f32_to_f16(scale);
  for (int i = 0; i < kBlock; ++i)
    block.qs[i] = static_cast<int8_t>(std::round(values[i] * inverse));
  return block;
}

// The value of largest magnitude becomes -8 exactly, whatever its sign.
BlockQ4_0 round_q4_0(const float* values) {
  float extreme = 0;
  for (int i = 0; i < kBlock; ++i)
    if (std::abs(values[i]) > std::abs(extreme)) extreme = values[i];
  const float scale = extreme / -8;
  const float inverse = scale != 0 ? 1 / scale : 0;
  const auto level = [&](float value) {
    return static_cast<uint8_t>(std::min(15, static_cast<int>(value * inverse + 8.5f)));
  };
  BlockQ4_0 block{};
  block.d = f32_to_f16(scale);
  for (int i = 0; i < kBlock / 2; ++i)
    block.qs[i] = static_cast<uint8_t>(level(values[i]) | level(values[i + kBlock / 2]) << 4);
  return block;
}

template <auto convert>
void round_halves(const float* src, std::byte* dst, int64_t n) {
  for (int64_t i = 0; i < n; ++i) put(dst, i, convert(src[i]));
}

}  // namespace

Result<WeightTypes> weight_types(std::string_view dtype, std::string_view quantization) {
  const auto refuse = [](std::string_view what, std::string_view value, std::string_view known) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is '{}'; it may be {}", what, value, known));
  };
  WeightTypes types;
  if (dtype == "float16")
    types.matrices = DType::f16;
  else if (dtype == "bfloat16")
    types.matrices = DType::bf16;
  else if (dtype != "auto" && dtype != "float32")
    return refuse("dtype", dtype, "auto, float32, float16 or bfloat16");
  if (quantization == "int8")
    types.matrices = DType::q8_0;
  else if (quantization == "int4")
    types.matrices = DType::q4_0;
  else if (!quantization.empty() && quantization != "none")
    return refuse("quantization", quantization, "none, int8 or int4");
  return types;
}

void round_row(DType type, const float* src, std::byte* dst, int64_t n) {
  switch (type) {
    case DType::f16:
      return round_halves<f32_to_f16>(src, dst, n);
    case DType::bf16:
      return round_halves<f32_to_bf16>(src, dst, n);
    case DType::q8_0:
      for (int64_t i = 0; i < n / kBlock; ++i) put(dst, i, round_q8_0(src + i * kBlock));
      return;
    case DType::q4_0:
      for (int64_t i = 0; i < n / kBlock; ++i) put(dst, i, round_q4_0(src + i * kBlock));
      return;
    default:
      std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(float));
  }
}

}  // namespace octavo
