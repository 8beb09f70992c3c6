#include <gtest/gtest.h>

#include <cmath>

#include "kernels/test_util.h"

namespace octavo::kernels {
namespace {

using namespace testing;

std::vector<float> run_a8(const Ops& isa, const PanelMatrix& w, const std::vector<float>& x,
                          int64_t tokens) {
  A8Buffer a(tokens, w.cols);
  for (int64_t t = 0; t < tokens; ++t) isa.quantize_a8(x.data() + t * w.cols, a.a8, t);
  std::vector<float> y(static_cast<size_t>(tokens * w.panels() * kPanelRows));
  isa.matmul_a8(w, 0, w.panels(), a.a8, tokens, y.data(), w.panels() * kPanelRows);
  return y;
}

std::vector<float> run_f32(const Ops& isa, const PanelMatrix& w, const std::vector<float>& x,
                           int64_t tokens) {
  std::vector<float> y(static_cast<size_t>(tokens * w.panels() * kPanelRows));
  isa.matmul_f32(w, 0, w.panels(), x.data(), w.cols, tokens, y.data(), w.panels() * kPanelRows);
  return y;
}

double relative_error(const std::vector<float>& actual, const std::vector<float>& exact) {
  double error = 0, norm = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    error += std::pow(exact[i] - actual[i], 2);
    norm += std::pow(exact[i], 2);
  }
  return std::sqrt(error / norm);
}

TEST(MatmulA8, EqualsRefToTheBit) {
  for (DType type : kAllTypes) {
    if (!info(type).quantized) continue;
    const int64_t step = info(type).block_elements;
    for (int64_t cols : {step, 3 * step, int64_t{1280}})
      for (int64_t tokens : {1, 2, 3, 8, 13}) {
        const StoredMatrix m = random_matrix(type, 37, cols, 7);
        const PackedMatrix p = packed(m);
        std::vector<float> x = random_floats(static_cast<size_t>(tokens * cols), 11);
        // Some tokens get an outlier: tiles then mix tokens whose block is wide with others.
        for (int64_t t = 0; t < tokens; t += 3) x[static_cast<size_t>(t * cols + t)] = 40.0f;
        EXPECT_EQ(run_a8(ops(), p.view(), x, tokens), run_a8(ref(), p.view(), x, tokens))
            << name(type) << " cols " << cols << " tokens " << tokens;
      }
  }
}

// The largest codes and activations that exist: where 16-bit sums would overflow.
TEST(MatmulA8, ExtremesDoNotOverflow) {
  for (DType type : {DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q8_0, DType::q6_k,
                     DType::q5_k, DType::q3_k}) {
    for (int fill : {0x00, 0x7f, 0x80, 0xff}) {
      StoredMatrix m = random_matrix(type, 16, 512, 3);
      const auto block = static_cast<size_t>(info(type).block_bytes);
      for (size_t i = 0; i < m.bytes.size(); ++i) m.bytes[i] = static_cast<std::byte>(fill);
      for (size_t at = 0; at < m.bytes.size(); at += block)
        for (size_t offset : scale_offsets(type)) {
          const uint16_t one = f32_to_f16(1.0f);
          std::memcpy(m.bytes.data() + at + offset, &one, 2);
        }
      const PackedMatrix p = packed(m);
      for (float sign : {1.0f, -1.0f}) {
        std::vector<float> x(512, sign);
        for (size_t i = 64; i < 96; ++i) x[i] = 50 * sign;  // a wide block
        EXPECT_EQ(run_a8(ops(), p.view(), x, 1), run_a8(ref(), p.view(), x, 1))
            << name(type) << " fill " << fill;
      }
    }
  }
}

TEST(MatmulA8, ApproximatesTheExactProduct) {
  for (DType type : kAllTypes) {
    if (!info(type).quantized) continue;
    const PackedMatrix p = packed(random_matrix(type, 32, 1024, 5));
    const std::vector<float> x = random_floats(1024, 6);
    const auto exact = run_f32(ref(), p.view(), x, 1);
    // Rounding to 1/127 of the block's largest, half a step each way.
    EXPECT_LT(relative_error(run_a8(ops(), p.view(), x, 1), exact), 0.02) << name(type);
  }
}

// One large value must not drown the others of its block.
TEST(MatmulA8, OutliersCostNoAccuracy) {
  for (DType type : {DType::q4_0, DType::q4_1, DType::q6_k, DType::q8_0}) {
    const PackedMatrix p = packed(random_matrix(type, 32, 512, 5));
    std::vector<float> x = random_floats(512, 6);
    for (size_t i = 0; i < 512; ++i)
      if (i / 32 != 3) x[i] *= 0.01f;
    x[100] = 30;
    const auto exact = run_f32(ref(), p.view(), x, 1), rounded = run_a8(ops(), p.view(), x, 1);
    EXPECT_LT(relative_error(rounded, exact), 0.0005) << name(type);
  }
}

TEST(MatmulF32, AgreesWithDoublePrecision) {
  for (DType type : kAllTypes)
    for (int64_t tokens : {1, 2, 5, 11}) {
      const int64_t cols = info(type).quantized ? 512 : 515;
      const PackedMatrix p = packed(random_matrix(type, 33, cols, 9));
      const std::vector<float> x = random_floats(static_cast<size_t>(tokens * cols), 10);
      const auto y = run_f32(ops(), p.view(), x, tokens);
      std::vector<float> row(static_cast<size_t>(cols));
      for (int64_t r = 0; r < 33; ++r) {
        unpack_row(p.view(), r, row.data());
        for (int64_t t = 0; t < tokens; ++t) {
          double sum = 0, magnitude = 0;
          for (int64_t k = 0; k < cols; ++k) {
            const double term =
                double{row[static_cast<size_t>(k)]} * x[static_cast<size_t>(t * cols + k)];
            sum += term;
            magnitude += std::fabs(term);
          }
          // Bound of a chain of n roundings: n * 2^-24 of the sum of magnitudes; random signs stay
          // far below it.
          EXPECT_NEAR(y[static_cast<size_t>(t * 48 + r)], sum, 2e-6 * magnitude)
              << name(type) << " row " << r;
        }
      }
    }
}

TEST(MatmulBf16, IsTheProductOfRoundedActivations) {
  if (!ops().matmul_bf16) GTEST_SKIP() << "no bf16 dot product in " << ops().isa;
  for (int64_t cols : {1, 31, 512, 1037})
    for (int64_t tokens : {1, 2, 7, 13, 270}) {
      const PackedMatrix p = packed(random_matrix(DType::bf16, 33, cols, 9));
      std::vector<float> x = random_floats(static_cast<size_t>(tokens * cols), 10);
      std::vector<float> y(static_cast<size_t>(tokens * 48));
      ops().matmul_bf16(p.view(), 0, 1, x.data(), cols, tokens, y.data(), 48);
      ops().matmul_bf16(p.view(), 1, 3, x.data(), cols, tokens, y.data(), 48);
      for (float& v : x) v = bf16_to_f32(f32_to_bf16(v));
      const auto exact = run_f32(ref(), p.view(), x, tokens);
      EXPECT_LT(relative_error(y, exact), 1e-5) << cols << " x " << tokens;
      for (int64_t t = 0; t < tokens; ++t) {
        std::vector<float> alone(48);
        ops().matmul_bf16(p.view(), 0, 3, x.data() + t * cols, cols, 1, alone.data(), 48);
        ASSERT_EQ(std::memcmp(alone.data(), y.data() + t * 48, 48 * 4), 0) << t;
      }
    }
}

// I1: a token's results do not depend on the tokens computed beside it, nor on how panels are
// split.
TEST(Matmul, ATokenDoesNotSeeItsCompany) {
  for (DType type : kAllTypes) {
    const PackedMatrix p = packed(random_matrix(type, 48, 512, 21));
    const std::vector<float> x = random_floats(19 * 512, 22);
    const bool a8 = info(type).quantized;
    const auto all = a8 ? run_a8(ops(), p.view(), x, 19) : run_f32(ops(), p.view(), x, 19);
    const auto all_f32 = run_f32(ops(), p.view(), x, 19);
    for (size_t t = 0; t < 19; ++t) {
      const std::vector<float> one(x.begin() + static_cast<long>(t * 512),
                                   x.begin() + static_cast<long>((t + 1) * 512));
      const auto alone = a8 ? run_a8(ops(), p.view(), one, 1) : run_f32(ops(), p.view(), one, 1);
      EXPECT_EQ(std::memcmp(alone.data(), all.data() + t * 48, 48 * 4), 0)
          << name(type) << " token " << t;
      const auto alone_f32 = run_f32(ops(), p.view(), one, 1);
      EXPECT_EQ(std::memcmp(alone_f32.data(), all_f32.data() + t * 48, 48 * 4), 0)
          << name(type) << " token " << t;
    }
  }
}

TEST(QuantizeA8, EqualsRef) {
  std::vector<float> x = random_floats(4096, 31);
  for (size_t i = 0; i < 64; ++i) x[i] = 0;        // zero blocks
  for (size_t i = 64; i < 96; ++i) x[i] = 1e-42f;  // subnormal scale
  for (size_t i = 96; i < 128; ++i) x[i] = 3e38f;  // near the largest float
  x[130] = std::nanf("");
  x[170] = -INFINITY;
  for (size_t start : {0u, 192u}) {  // with the bad values, and without
    const auto cols = static_cast<int64_t>(x.size() - start);
    A8Buffer a(1, cols), b(1, cols);
    ops().quantize_a8(x.data() + start, a.a8, 0);
    ref().quantize_a8(x.data() + start, b.a8, 0);
    EXPECT_EQ(a.q, b.q);
    EXPECT_EQ(a.q_low, b.q_low);
    EXPECT_EQ(a.wide, b.wide);
    EXPECT_EQ(a.sum, b.sum);
    for (size_t i = 0; i < a.d.size(); ++i) {
      EXPECT_EQ(std::isnan(a.d[i]), std::isnan(b.d[i])) << i;
      if (std::isnan(b.d[i])) continue;
      EXPECT_EQ(a.d[i], b.d[i]) << i;
    }
    if (start > 0) continue;
    EXPECT_TRUE(std::isnan(a.d[4 * kA8Tokens]));  // a NaN cannot hide behind rounding
    EXPECT_TRUE(std::isnan(a.d[5 * kA8Tokens]));  // nor an infinity
  }
}

}  // namespace
}  // namespace octavo::kernels
