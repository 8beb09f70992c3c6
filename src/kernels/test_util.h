// Random matrices and vectors for the kernel tests.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "kernels/isa.h"
#include "kernels/pack.h"
#include "tensor/half.h"

namespace octavo::kernels::testing {

constexpr DType kAllTypes[] = {DType::f32,  DType::f16,  DType::bf16, DType::q4_0, DType::q4_1,
                               DType::q5_0, DType::q5_1, DType::q8_0, DType::q2_k, DType::q3_k,
                               DType::q4_k, DType::q5_k, DType::q6_k, DType::q4_z};

// Byte offsets of the f16 scales in a stored block; the rest of a block may be any bits.
inline std::vector<size_t> scale_offsets(DType type) {
  switch (type) {
    case DType::q4_0:
    case DType::q5_0:
    case DType::q8_0:
    case DType::q4_z:
      return {0};
    case DType::q4_1:
    case DType::q5_1:
    case DType::q4_k:
    case DType::q5_k:
      return {0, 2};
    case DType::q2_k:
      return {80, 82};
    case DType::q3_k:
      return {108};
    case DType::q6_k:
      return {208};
    default:
      return {};
  }
}

struct StoredMatrix {
  std::vector<std::byte> bytes;
  TensorView view;
};

inline StoredMatrix random_matrix(DType type, int64_t rows, int64_t cols, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  StoredMatrix m;
  m.bytes.resize(row_bytes(type, static_cast<size_t>(cols)) * static_cast<size_t>(rows));
  auto put = [&](size_t at, auto value) {
    std::memcpy(m.bytes.data() + at, &value, sizeof(value));
  };
  if (info(type).quantized) {
    for (std::byte& b : m.bytes) b = static_cast<std::byte>(rng());
    const auto block = static_cast<size_t>(info(type).block_bytes);
    for (size_t at = 0; at < m.bytes.size(); at += block)
      for (size_t offset : scale_offsets(type)) put(at + offset, f32_to_f16(0.01f * normal(rng)));
  } else {
    const size_t size = type == DType::f32 ? 4 : 2;
    for (size_t at = 0; at < m.bytes.size(); at += size) {
      const float x = normal(rng);
      if (type == DType::f32)
        put(at, x);
      else
        put(at, type == DType::f16 ? f32_to_f16(x) : f32_to_bf16(x));
    }
  }
  m.view.type = type;
  m.view.shape = {cols, rows, 1, 1};
  m.view.rank = 2;
  m.view.data = m.bytes;
  return m;
}

inline PackedMatrix packed(const StoredMatrix& m) {
  PackedMatrix p = *PackedMatrix::allocate(m.view.type, m.view.rows(), m.view.cols());
  for (int64_t panel = 0; panel < p.view().panels(); ++panel) p.pack_panel(panel, m.view);
  return p;
}

inline std::vector<float> random_floats(size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(rng);
  return x;
}

// Owns what an A8 points to.
struct A8Buffer {
  A8Buffer(int64_t tokens, int64_t cols)
      : q(static_cast<size_t>((tokens + 7) / 8 * 8 * cols)),
        q_low(q.size()),
        wide(q.size() / 32),
        d(q.size() / 32),
        s(q.size() / 32),
        s_half(q.size() / 16),
        sum(q.size() / 8),
        a8{q.data(), q_low.data(),  wide.data(), d.data(),
           s.data(), s_half.data(), sum.data(),  cols} {}
  std::vector<int8_t> q, q_low;
  std::vector<uint8_t> wide;
  std::vector<float> d, s, s_half;
  std::vector<int32_t> sum;
  A8 a8;
};

inline const Ops& ops() {
  static const Ops* chosen = *select_isa_from_environment();
  return *chosen;
}
inline const Ops& ref() {
  static const Ops* chosen = *select_isa("ref");
  return *chosen;
}

}  // namespace octavo::kernels::testing
