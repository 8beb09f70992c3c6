#include <gtest/gtest.h>

#include <cmath>

#include "kernels/test_util.h"

namespace octavo::kernels {
namespace {

using namespace testing;

TEST(RmsNorm, AgreesWithRef) {
  for (int64_t n : {16, 64, 576, 4096}) {
    const auto x = random_floats(static_cast<size_t>(n), 1),
               w = random_floats(static_cast<size_t>(n), 2);
    std::vector<float> a(x.size()), b(x.size());
    ops().rms_norm(x.data(), w.data(), 1e-5f, n, a.data());
    ref().rms_norm(x.data(), w.data(), 1e-5f, n, b.data());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-6f * (1 + std::fabs(b[i])));
  }
}

TEST(SiluMul, AgreesWithRefOverTheWholeRange) {
  std::vector<float> gate, up;
  for (float x = -120; x < 120; x += 0.37f) {
    gate.push_back(x);
    up.push_back(1.5f);
  }
  gate.resize(640);
  up.resize(640);
  std::vector<float> a(640), b(640);
  ops().silu_mul(gate.data(), up.data(), 640, a.data());
  ref().silu_mul(gate.data(), up.data(), 640, b.data());
  for (size_t i = 0; i < 640; ++i)
    EXPECT_NEAR(a[i], b[i], 1e-6f * (1 + std::fabs(b[i]))) << gate[i];
}

TEST(GeluMul, AgreesWithRefOverTheWholeRange) {
  std::vector<float> gate, up;
  for (float x = -60; x < 60; x += 0.0937f) {
    gate.push_back(x);
    up.push_back(1.5f);
  }
  gate.resize(1280);
  up.resize(1280);
  std::vector<float> a(1280), b(1280);
  ops().gelu_mul(gate.data(), up.data(), 1280, a.data());
  ref().gelu_mul(gate.data(), up.data(), 1280, b.data());
  for (size_t i = 0; i < 1280; ++i)
    EXPECT_NEAR(a[i], b[i], 1e-6f * (1 + std::fabs(b[i]))) << gate[i];
}

// torch.nn.functional.gelu(x, approximate="tanh") in float64.
TEST(GeluMul, KnownValues) {
  std::vector<float> gate(16, 0.0f), up(16, 1.0f), y(16);
  const float x[] = {-3, -1, -0.5f, 0, 0.5f, 1, 3};
  const double expected[] = {-0.0036373920817729943, -0.15880800939172324, -0.154285990174856, 0,
                             0.345714009825144,      0.8411919906082768,   2.996362607918227};
  std::copy(std::begin(x), std::end(x), gate.begin());
  ops().gelu_mul(gate.data(), up.data(), 16, y.data());
  for (size_t i = 0; i < std::size(x); ++i) EXPECT_NEAR(y[i], expected[i], 1e-6) << x[i];
}

TEST(GeluMul, NanStaysNan) {
  std::vector<float> gate(16, std::nanf("")), up(16, 1.0f), y(16);
  ops().gelu_mul(gate.data(), up.data(), 16, y.data());
  for (float v : y) EXPECT_TRUE(std::isnan(v));
}

TEST(SiluMul, NanStaysNan) {
  std::vector<float> gate(16, std::nanf("")), up(16, 1.0f), y(16);
  ops().silu_mul(gate.data(), up.data(), 16, y.data());
  for (float v : y) EXPECT_TRUE(std::isnan(v));
}

TEST(LayerNorm, AgreesWithRef) {
  for (int64_t n : {16, 64, 384, 4096})
    for (float mean : {0.0f, 3.0f, -100.0f}) {
      auto x = random_floats(static_cast<size_t>(n), 1);
      for (float& v : x) v += mean;
      const auto w = random_floats(x.size(), 2), bias = random_floats(x.size(), 3);
      std::vector<float> a(x.size()), b(x.size());
      ops().layer_norm(x.data(), w.data(), bias.data(), 1e-12f, n, a.data());
      ref().layer_norm(x.data(), w.data(), bias.data(), 1e-12f, n, b.data());
      const float tolerance = 3e-6f * (1 + std::fabs(mean));
      for (size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], tolerance * (1 + std::fabs(b[i]))) << n << " mean " << mean;
    }
}

TEST(GeluErf, AgreesWithRefOverTheWholeRange) {
  std::vector<float> x;
  for (float v = -60; v < 60; v += 0.0937f) x.push_back(v);
  for (float v = -0.5f; v < 0.5f; v += 0.003f) x.push_back(v);
  x.resize((x.size() + 15) / 16 * 16);
  std::vector<float> a(x.size()), b(x.size());
  ops().gelu_erf(x.data(), std::ssize(x), a.data());
  ref().gelu_erf(x.data(), std::ssize(x), b.data());
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 5e-7f * (1 + std::fabs(b[i]))) << x[i];
}

// torch.nn.functional.gelu(x) in float64.
TEST(GeluErf, KnownValues) {
  std::vector<float> x(16, 0.0f), y(16);
  const float values[] = {-3, -1, -0.5f, 0, 0.5f, 1, 3};
  const double expected[] = {-0.00404969409489031, -0.15865525393145707, -0.15426876936299344, 0,
                             0.34573123063700656,  0.8413447460685429,   2.9959503059051097};
  std::copy(std::begin(values), std::end(values), x.begin());
  ops().gelu_erf(x.data(), 16, y.data());
  for (size_t i = 0; i < std::size(values); ++i) EXPECT_NEAR(y[i], expected[i], 5e-7) << x[i];
}

TEST(GeluErf, NanStaysNan) {
  std::vector<float> x(16, std::nanf("")), y(16);
  ops().gelu_erf(x.data(), 16, y.data());
  for (float v : y) EXPECT_TRUE(std::isnan(v));
}

TEST(Rope, RotatesPairsAndLeavesTheRest) {
  for (bool interleaved : {false, true}) {
    const auto x = random_floats(3 * 64, 4);
    std::vector<float> cosines(24), sines(24), y = x;
    for (size_t i = 0; i < 24; ++i) {
      cosines[i] = std::cos(0.3f * static_cast<float>(i));
      sines[i] = std::sin(0.3f * static_cast<float>(i));
    }
    ops().rope(y.data(), 3, 64, 24, interleaved, cosines.data(), sines.data());
    for (size_t h = 0; h < 3; ++h) {
      for (size_t i = 0; i < 24; ++i) {
        const size_t a = h * 64 + (interleaved ? 2 * i : i), b = interleaved ? a + 1 : a + 24;
        EXPECT_NEAR(y[a], x[a] * cosines[i] - x[b] * sines[i], 1e-6);
        EXPECT_NEAR(y[b], x[b] * cosines[i] + x[a] * sines[i], 1e-6);
      }
      for (size_t i = 48; i < 64; ++i) EXPECT_EQ(y[h * 64 + i], x[h * 64 + i]);
    }
  }
}

TEST(Add, Adds) {
  auto x = random_floats(48, 1);
  const auto before = x, y = random_floats(48, 2);
  ops().add(x.data(), y.data(), 48);
  for (size_t i = 0; i < 48; ++i) EXPECT_EQ(x[i], before[i] + y[i]);
}

TEST(AddScaled, AddsMultiples) {
  for (const float scale : {1.0f, 0.22f, -3.0f}) {
    auto x = random_floats(48, 1);
    const auto before = x, y = random_floats(48, 2);
    ops().add_scaled(x.data(), y.data(), scale, 48);
    for (size_t i = 0; i < 48; ++i)
      EXPECT_NEAR(x[i], before[i] + scale * y[i], scale == 1 ? 0 : 1e-6) << scale;
  }
}

TEST(Softcap, AgreesWithRefOverTheWholeRange) {
  for (const float cap : {1.5f, 30.0f, 50.0f}) {
    std::vector<float> x;
    for (float v = -320; v < 320; v += 0.25f) x.push_back(v);
    std::vector<float> expected = x;
    ops().softcap(x.data(), cap, std::ssize(x));
    ref().softcap(expected.data(), cap, std::ssize(x));
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(x[i], expected[i], 5e-7f * cap) << i;
      EXPECT_LE(std::fabs(x[i]), cap);
    }
  }
}

// cap * tanh(x / cap) in float64.
TEST(Softcap, KnownValues) {
  std::vector<float> x(16, 0.0f);
  const float in[] = {-400, -30, -1, 0, 0.5f, 30, 400};
  const double expected[] = {-30, -22.847824678672945, -0.9996297942078962,
                             0,   0.49995371141956254, 22.847824678672945,
                             30};
  std::copy(std::begin(in), std::end(in), x.begin());
  ops().softcap(x.data(), 30, 16);
  for (size_t i = 0; i < std::size(in); ++i) EXPECT_NEAR(x[i], expected[i], 6e-6) << in[i];
}

TEST(Softcap, WhatIsNotFiniteIsNotHidden) {
  for (float bad : {std::nanf(""), INFINITY, -INFINITY}) {
    std::vector<float> x(16, bad);
    ops().softcap(x.data(), 30, 16);
    for (float v : x) EXPECT_TRUE(std::isnan(v));
  }
}

}  // namespace
}  // namespace octavo::kernels
