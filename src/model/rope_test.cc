// Expected numbers were computed in Python, in float64, by the formulas of transformers'
// modeling_rope_utils (YaRN: Peng et al. 2023; Llama 3.1's bands; LongRoPE: Ding et al. 2024).
#include "model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

namespace octavo {
namespace {

void expect_frequencies(const RopeConfig& config, const std::vector<double>& expected,
                        int context = 4096) {
  const RopeTable table(config, context);
  ASSERT_EQ(table.frequencies().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(table.frequencies()[i] / expected[i], 1, 1e-6) << i;
}

struct Angles {
  std::vector<float> cosines, sines;
};
Angles angles(const RopeConfig& config, int position, int context = 4096) {
  const RopeTable table(config, context);
  const auto pairs = static_cast<size_t>(table.pairs());
  Angles out{std::vector<float>(pairs), std::vector<float>(pairs)};
  table.angles(position, out.cosines.data(), out.sines.data());
  return out;
}

const RopeConfig kPlain{.dims = 16};

TEST(Rope, Plain) {
  expect_frequencies(
      kPlain, {1, 0.316227766, 0.1, 0.0316227766, 0.01, 0.00316227766, 0.001, 0.000316227766});
}

// With frequency and angle in float32, as models compute them.
TEST(Rope, AnglesNearAndFar) {
  const double cosines[] = {-0.999360807, 0.88029756,   -0.952155368, -0.261741524,
                            0.562379076,  -0.477424739, 0.862322736,  0.978682422};
  const double sines[] = {0.035748798, -0.47442197, -0.305614389, 0.965138008,
                          0.826879541, 0.878672646, -0.506359062, 0.205379446};
  const Angles far = angles(kPlain, 100000), first = angles(kPlain, 0);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_NEAR(far.cosines[i], cosines[i], 1e-6) << i;
    EXPECT_NEAR(far.sines[i], sines[i], 1e-6) << i;
    EXPECT_EQ(first.cosines[i], 1) << i;
    EXPECT_EQ(first.sines[i], 0) << i;
  }
}

TEST(Rope, Linear) {
  RopeConfig config = kPlain;
  config.scaling = RopeScaling::linear;
  config.factor = 4;
  expect_frequencies(config, {0.25, 0.0790569415, 0.025, 0.00790569415, 0.0025, 0.000790569415,
                              0.00025, 7.90569415e-05});
}

TEST(Rope, DynamicGrowsWithTheLengthBeyondTheOriginalContext) {
  RopeConfig config = kPlain;
  config.scaling = RopeScaling::dynamic;
  config.factor = 2;
  config.original_context = 2048;
  EXPECT_EQ(angles(config, 2047, 2048).cosines, angles(kPlain, 2047).cosines);
  EXPECT_NE(angles(config, 2047, 4097).cosines, angles(kPlain, 2047).cosines);
  // The base is 35110.98 then.
  const double cosines[] = {0.803990613,  0.324000415, -0.714691642,  0.692704698,
                            -0.991335177, 0.930527452, -0.0261006919, 0.908290979};
  const Angles at = angles(config, 4096, 4097);
  for (size_t i = 0; i < 8; ++i) EXPECT_NEAR(at.cosines[i], cosines[i], 1e-3) << i;
}

TEST(Rope, Yarn) {
  RopeConfig config = kPlain;
  config.scaling = RopeScaling::yarn;
  config.factor = 4;
  config.original_context = 4096;
  expect_frequencies(
      config, {1, 0.316227766, 0.1, 0.025693506, 0.00625, 0.00138349648, 0.00025, 7.90569415e-05});
  EXPECT_NEAR(yarn_attention_factor(4), 1.138629436111989, 1e-6);
  EXPECT_EQ(yarn_attention_factor(1), 1);
}

TEST(Rope, YarnOfALargeHead) {
  const RopeTable table({.base = 1e6f,
                         .dims = 128,
                         .scaling = RopeScaling::yarn,
                         .factor = 4,
                         .original_context = 32768},
                        131072);
  const std::pair<size_t, double> expected[] = {
      {0, 1}, {20, 0.0133352143}, {30, 0.00106436098}, {40, 4.44569853e-05}, {63, 3.1023444e-07}};
  for (const auto& [pair, frequency] : expected)
    EXPECT_NEAR(table.frequencies()[pair] / frequency, 1, 1e-6) << pair;
}

TEST(Rope, Llama3) {
  expect_frequencies({.base = 500000,
                      .dims = 16,
                      .scaling = RopeScaling::llama3,
                      .factor = 8,
                      .original_context = 8192},
                     {1, 0.193922745, 0.0376060309, 0.00729266474, 0.000524846161, 3.4281022e-05,
                      6.64786987e-06, 1.28917317e-06});
}

TEST(Rope, Llama3ByDivisors) {
  RopeConfig config = kPlain;
  config.scaling = RopeScaling::llama3;
  config.divisors = {1, 1, 1, 2, 4, 8, 8, 8};
  expect_frequencies(config, {1, 0.316227766, 0.1, 0.0158113883, 0.0025, 0.000395284708, 0.000125,
                              3.95284708e-05});
}

TEST(Rope, LongRopeHasTwoSets) {
  RopeConfig config = kPlain;
  config.scaling = RopeScaling::longrope;
  config.original_context = 4096;
  config.divisors = std::vector<float>(8, 1);
  config.long_divisors = {1, 2, 2, 4, 4, 8, 8, 8};
  expect_frequencies(
      config, {1, 0.316227766, 0.1, 0.0316227766, 0.01, 0.00316227766, 0.001, 0.000316227766},
      4096);
  expect_frequencies(
      config,
      {1, 0.158113883, 0.05, 0.00790569415, 0.0025, 0.000395284708, 0.000125, 3.95284708e-05},
      131072);
  EXPECT_NEAR(longrope_attention_factor(131072, 4096), 1.1902380714238083, 1e-6);
  EXPECT_EQ(longrope_attention_factor(4096, 4096), 1);
}

TEST(Rope, TheAttentionFactorScalesBoth) {
  RopeConfig config = kPlain;
  config.attention_factor = 1.25f;
  const Angles plain = angles(kPlain, 3), scaled = angles(config, 3);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_FLOAT_EQ(scaled.cosines[i], 1.25f * plain.cosines[i]);
    EXPECT_FLOAT_EQ(scaled.sines[i], 1.25f * plain.sines[i]);
  }
}

TEST(Rope, KindsByName) {
  EXPECT_EQ(rope_scaling_from_name("default"), RopeScaling::none);
  EXPECT_EQ(rope_scaling_from_name("longrope"), RopeScaling::longrope);
  EXPECT_EQ(rope_scaling_from_name("mrope"), std::nullopt);
}

}  // namespace
}  // namespace octavo
