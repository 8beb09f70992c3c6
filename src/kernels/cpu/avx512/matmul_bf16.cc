// Matrix products of bf16 weights with activations rounded to bf16. Compiled for AVX-512 with BF16
// alone: see ops_avx512.cc for what may stand here.
#include <immintrin.h>

#include "kernels/api.h"
#include "kernels/panel_layout.h"

namespace octavo::kernels {
namespace {

constexpr int kInputs = 512;  // of a chunk: 16 KB of a panel, which fit the first-level cache
constexpr int kSlab = 256;    // tokens, whose activations of a chunk (256 KB) fit the second
constexpr int kTile = 16;     // tokens that share one load of weights

// Activations of a chunk, [token][input], zero behind the last input.
using Rounded = uint16_t[kSlab][kInputs];

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

void round_row(const float* x, int64_t count, uint16_t* out) {
  for (int64_t i = 0; i < count; i += 32) {
    const int64_t left = count - i;
    const uint32_t mask = left >= 32 ? ~0u : (1u << left) - 1;
    const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x + i);
    const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16), x + i + 16);
    _mm512_storeu_si512(out + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
}

// Adds `pairs` pairs of inputs to the sums of M tokens in y.
template <int M>
[[gnu::always_inline]] inline void add_pairs(const uint8_t* weights, int64_t pairs,
                                             const uint16_t (*x)[kInputs], bool is_first, float* y,
                                             int64_t y_stride) {
  __m512 acc[M];
  for (int m = 0; m < M; ++m)
    acc[m] = is_first ? _mm512_setzero_ps() : _mm512_loadu_ps(y + m * y_stride);
  for (int64_t i = 0; i < pairs; ++i) {
    const auto w = reinterpret_cast<__m512bh>(_mm512_loadu_si512(weights + 64 * i));
    for (int m = 0; m < M; ++m) {
      int32_t pair;
      __builtin_memcpy(&pair, x[m] + 2 * i, 4);
      acc[m] = _mm512_dpbf16_ps(acc[m], w, reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair)));
    }
  }
  for (int m = 0; m < M; ++m) _mm512_storeu_ps(y + m * y_stride, acc[m]);
}

// As many tokens as a tile holds, then the rest in smaller ones.
template <int M>
void add_tokens(const uint8_t* weights, int64_t pairs, const uint16_t (*x)[kInputs], bool is_first,
                int64_t tokens, float* y, int64_t y_stride) {
  int64_t t = 0;
  for (; t + M <= tokens; t += M)
    add_pairs<M>(weights, pairs, x + t, is_first, y + t * y_stride, y_stride);
  if constexpr (M > 1)
    add_tokens<M / 2>(weights, pairs, x + t, is_first, tokens - t, y + t * y_stride, y_stride);
}

}  // namespace

void matmul_bf16_avx512(const PanelMatrix& w, int64_t begin, int64_t end, const float* x,
                        int64_t x_stride, int64_t tokens, float* y, int64_t y_stride);

void matmul_bf16_avx512(const PanelMatrix& w, int64_t begin, int64_t end, const float* x,
                        int64_t x_stride, int64_t tokens, float* y, int64_t y_stride) {
  alignas(64) Rounded rounded;
  for (int64_t t = 0; t < tokens; t += kSlab)
    for (int64_t first = 0; first < w.cols; first += kInputs) {
      const int64_t count = least(w.cols - first, kInputs), slab = least(tokens - t, kSlab);
      for (int64_t i = 0; i < slab; ++i)
        round_row(x + (t + i) * x_stride + first, count, rounded[i]);
      for (int64_t panel = begin; panel < end; ++panel)
        add_tokens<kTile>(w.data + panel * static_cast<int64_t>(w.panel_bytes) + first * 32,
                          (count + 1) / 2, rounded, first == 0, slab,
                          y + t * y_stride + panel * kPanelRows, y_stride);
    }
}

}  // namespace octavo::kernels
