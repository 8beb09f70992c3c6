#include "tensor/dequant.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "support/paths.h"
#include "tensor/blocks.h"
#include "tensor/half.h"

namespace octavo {
namespace {

struct Sample {
  std::vector<std::byte> blocks;
  std::vector<float> values;
};

// tests/data/dequant/TYPE.bin, made by tools/make_dequant_data.py: blocks, then the values another
// program gives them.
Sample load_sample(DType type) {
  const std::string file =
      testing::read_file(testing::test_data("dequant/" + std::string(name(type)) + ".bin"));
  const auto elements = static_cast<size_t>(info(type).block_elements);
  const auto bytes = static_cast<size_t>(info(type).block_bytes);
  const size_t count = file.size() / (bytes + elements * sizeof(float));
  Sample sample{std::vector<std::byte>(count * bytes), std::vector<float>(count * elements)};
  if (file.size() != sample.blocks.size() + sample.values.size() * sizeof(float)) return {};
  std::memcpy(sample.blocks.data(), file.data(), sample.blocks.size());
  std::memcpy(sample.values.data(), file.data() + sample.blocks.size(),
              sample.values.size() * sizeof(float));
  return sample;
}

class Dequant : public ::testing::TestWithParam<DType> {};

TEST_P(Dequant, EqualsTheIndependentValuesBitForBit) {
  const Sample sample = load_sample(GetParam());
  ASSERT_GE(sample.values.size(), 256u);
  std::vector<float> got(sample.values.size());
  dequantize_row(GetParam(), sample.blocks.data(), got.data(), static_cast<int64_t>(got.size()));
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(sample.values[i]))
        << "value " << i << ": " << got[i] << ", expected " << sample.values[i];
}

TEST_P(Dequant, ReadsRowsThatStartAtAnyByte) {
  const Sample sample = load_sample(GetParam());
  std::vector<std::byte> shifted(1);
  shifted.insert(shifted.end(), sample.blocks.begin(), sample.blocks.end());
  const auto n = static_cast<size_t>(info(GetParam()).block_elements);
  std::vector<float> got(n);
  dequantize_row(GetParam(), shifted.data() + 1, got.data(), static_cast<int64_t>(n));
  EXPECT_EQ(std::memcmp(got.data(), sample.values.data(), n * sizeof(float)), 0);
}

TEST_P(Dequant, WritesNothingForAnEmptyRow) {
  float untouched = 7;
  dequantize_row(GetParam(), nullptr, &untouched, 0);
  EXPECT_EQ(untouched, 7);
}

INSTANTIATE_TEST_SUITE_P(Types, Dequant,
                         ::testing::Values(DType::f32, DType::f16, DType::bf16, DType::q4_0,
                                           DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0,
                                           DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k,
                                           DType::q6_k),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST(Blocks, ZeroPointsAreExact) {
  BlockQ4_Z block{.d = f32_to_f16(0.0123f), .z = 13, .qs = {}};
  for (int i = 0; i < 16; ++i) block.qs[i] = static_cast<uint8_t>(i | (15 - i) << 4);
  float values[32];
  dequantize_row(DType::q4_z, reinterpret_cast<const std::byte*>(&block), values, 32);
  const float d = f16_to_f32(f32_to_f16(0.0123f));
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], d * static_cast<float>(i - 13));
    EXPECT_EQ(values[16 + i], d * static_cast<float>(15 - i - 13));
  }
}

TEST(Blocks, SixBitScalesOfEveryGroup) {
  // Groups 0..3 hold 1, 2, 3, 4 and minima 5..8; groups 4..7 hold 49..52 and minima 33..36.
  const uint8_t scales[12] = {0xc1, 0xc2, 0xc3, 0xc4, 0x85, 0x86,
                              0x87, 0x88, 0x11, 0x22, 0x33, 0x44};
  for (int g = 0; g < 4; ++g) {
    EXPECT_EQ(k_scale_min(scales, g).scale, 1 + g);
    EXPECT_EQ(k_scale_min(scales, g).min, 5 + g);
    EXPECT_EQ(k_scale_min(scales, 4 + g).scale, 49 + g);
    EXPECT_EQ(k_scale_min(scales, 4 + g).min, 33 + g);
  }
}

}  // namespace
}  // namespace octavo
