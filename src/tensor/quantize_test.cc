#include "tensor/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "support/paths.h"
#include "tensor/dequant.h"

namespace octavo {
namespace {

constexpr int kRow = 256;  // whole blocks of every type

std::vector<float> floats(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

std::string read_sample(std::string_view name) {
  return testing::read_file(testing::test_data("quantize/" + std::string(name) + ".bin"));
}

std::string quantized(DType type, const std::vector<float>& values) {
  std::string out(row_bytes(type, values.size()), '\x55');
  quantize_row(type, values.data(), reinterpret_cast<std::byte*>(out.data()),
               static_cast<int64_t>(values.size()));
  return out;
}

std::vector<float> restored(DType type, const std::string& blocks, size_t n) {
  std::vector<float> values(n);
  dequantize_row(type, reinterpret_cast<const std::byte*>(blocks.data()), values.data(),
                 static_cast<int64_t>(n));
  return values;
}

double relative_error(DType type, const std::vector<float>& values) {
  const std::vector<float> back = restored(type, quantized(type, values), values.size());
  double lost = 0, all = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double off = double{back[i]} - double{values[i]};
    lost += off * off;
    all += double{values[i]} * double{values[i]};
  }
  return std::sqrt(lost / all);
}

std::vector<float> normal_values(int n, float scale) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

// tests/data/quantize: values.bin, and the blocks that ggml's quantize_row_TYPE_ref makes of them:
// even and uneven spreads, one sign, few values, zeros of both signs, constants, ties, and scales
// from denormal numbers to ten thousands.
class QuantizeGolden : public ::testing::TestWithParam<DType> {};

TEST_P(QuantizeGolden, ChoosesTheCodesOfTheReferenceBitForBit) {
  const std::string expected = read_sample(name(GetParam()));
  const std::string got = quantized(GetParam(), floats(read_sample("values")));
  ASSERT_EQ(got.size(), expected.size());
  ASSERT_GE(got.size(), 1000u);
  const auto block = static_cast<size_t>(info(GetParam()).block_bytes);
  for (size_t at = 0; at < got.size(); at += block)
    EXPECT_EQ(got.substr(at, block), expected.substr(at, block)) << "block " << at / block;
}

TEST_P(QuantizeGolden, EachBlockStandsForItself) {
  const std::vector<float> values = floats(read_sample("values"));
  const std::string whole = quantized(GetParam(), values);
  std::string pieces;
  for (size_t at = 0; at < values.size(); at += kRow)
    pieces += quantized(GetParam(), {values.begin() + static_cast<ptrdiff_t>(at),
                                     values.begin() + static_cast<ptrdiff_t>(at) + kRow});
  EXPECT_EQ(pieces, whole);
}

INSTANTIATE_TEST_SUITE_P(Types, QuantizeGolden,
                         ::testing::Values(DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1,
                                           DType::q8_0, DType::q4_k, DType::q5_k, DType::q6_k),
                         [](const auto& type) { return std::string(name(type.param)); });

struct Bound {
  DType type;
  // Relative root mean square of normal values: a little above what is usual. Of q6_k it grows
  // where the scale of a block is a denormal f16.
  double error;
};

class QuantizeBound : public ::testing::TestWithParam<Bound> {};

TEST_P(QuantizeBound, LosesLittleOfNormalValuesAtAnyScale) {
  for (const float scale : {0.001f, 0.05f, 1.0f, 100.0f}) {
    const double error = relative_error(GetParam().type, normal_values(64 * kRow, scale));
    EXPECT_LT(error, GetParam().error) << scale;
    if (info(GetParam().type).quantized) {
      EXPECT_GT(error, GetParam().error / 2) << scale;
    }
  }
}

TEST_P(QuantizeBound, KeepsZerosAndSurvivesWhatNoModelHolds) {
  const DType type = GetParam().type;
  const std::vector<float> zeros(kRow, 0.0f);
  EXPECT_EQ(restored(type, quantized(type, zeros), kRow), zeros);
  for (const float value : {3.0e38f, -3.0e38f, 1.0e10f, 1.0e-30f, 1.0e-41f}) {
    std::vector<float> row(kRow, value);
    for (size_t i = 0; i < row.size(); i += 3) row[i] = -value;
    EXPECT_EQ(quantized(type, row).size(), row_bytes(type, kRow));
  }
}

TEST_P(QuantizeBound, WritesRowsThatStartAtAnyByteAndNothingForAnEmptyOne) {
  const std::vector<float> values = normal_values(kRow, 1);
  const DType type = GetParam().type;
  const std::string expected = quantized(type, values);
  std::vector<std::byte> shifted(expected.size() + 1);
  quantize_row(type, values.data(), shifted.data() + 1, kRow);
  EXPECT_EQ(std::memcmp(shifted.data() + 1, expected.data(), expected.size()), 0);
  std::byte untouched{7};
  quantize_row(type, nullptr, &untouched, 0);
  EXPECT_EQ(untouched, std::byte{7});
}

INSTANTIATE_TEST_SUITE_P(Types, QuantizeBound,
                         ::testing::Values(Bound{DType::f32, 1e-30}, Bound{DType::f16, 3e-4},
                                           Bound{DType::bf16, 2.5e-3}, Bound{DType::q8_0, 0.0075},
                                           Bound{DType::q6_k, 0.022}, Bound{DType::q5_k, 0.045},
                                           Bound{DType::q5_1, 0.05}, Bound{DType::q5_0, 0.055},
                                           Bound{DType::q4_k, 0.09}, Bound{DType::q4_1, 0.095},
                                           Bound{DType::q4_0, 0.11}),
                         [](const auto& bound) { return std::string(name(bound.param.type)); });

TEST(Quantize, KnowsItsTypes) {
  EXPECT_TRUE(can_quantize_to(DType::q4_k));
  EXPECT_FALSE(can_quantize_to(DType::q2_k));
  EXPECT_FALSE(can_quantize_to(DType::q3_k));
}

}  // namespace
}  // namespace octavo
