// Matrix products with fp32 activations over P16 panels. Each output is one chain of float
// additions over the inputs in ascending order, whatever the tile (I1). Tokens take weights
// straight from the panel, unless those are quantised and the tokens more than two: then some
// inputs of a panel are unpacked once for all.

constexpr int kF32Chunk = 8;  // blocks whose weights as floats (16 KB) fit the first-level cache

// Input 4*line + kByte of 16 rows as floats, before scaling.
template <DType T, int kByte>
inline Vf code_floats(Line codes) {
  if constexpr (code_bits<T>() == 8)
    return vi_to_float(vi_sar<24>(vi_shl<24 - 8 * kByte>(line_words(codes))));
  else
    return vi_to_float(vi_and(vi_shr<8 * kByte>(line_words(codes)), vi_set(255)));
}

// Calls use(i, weights of 16 rows for input i) for the inputs of a block in order.
template <DType T, int kByte, class Use>
[[gnu::always_inline]] inline void each_byte(Line codes, int line, Vf d, Vf m, const Use& use) {
  if constexpr (kByte < 4) {
    Vf w = vmul(d, vsub(code_floats<T, kByte>(codes), vset(static_cast<float>(kLayout<T>.offset))));
    if constexpr (kHasMin<T>) w = vadd(w, m);
    use(4 * line + kByte, w);
    each_byte<T, kByte + 1>(codes, line, d, m, use);
  }
}

template <DType T, int kLine, class Use>
[[gnu::always_inline]] inline void each_line(const uint8_t* block, const Scales& s,
                                             const Use& use) {
  if constexpr (kLine < 8) {
    constexpr int half = kHalves<T> ? kLine / 4 : 0;
    const Vf m = kHasMin<T> ? s.m[half] : vzero();
    each_byte<T, 0>(code_line<T, kLine>(block), kLine, s.d[half], m, use);
    each_line<T, kLine + 1>(block, s, use);
  }
}

// The same for the two inputs of pair i of a bf16 panel, the second only if `count` covers it.
template <class Use>
[[gnu::always_inline]] inline void each_of_pair(const uint8_t* panel, int64_t i, int64_t count,
                                                const Use& use) {
  const Vi pair = line_words(line_load(panel + i * 64));
  use(2 * i, vi_as_float(vi_shl<16>(pair)));
  if (2 * i + 1 < count) use(2 * i + 1, vi_as_float(vi_and(pair, vi_set(~0xffff))));
}

// The same for inputs [first, first + count) of a panel; first is a multiple of 256.
template <DType T, class Use>
[[gnu::always_inline]] inline void each_input(const uint8_t* panel, int64_t cols, int64_t first,
                                              int64_t count, const Use& use) {
  constexpr PanelLayout l = kLayout<T>;
  const uint8_t* plain = panel + first * l.code_bytes;
  if constexpr (T == DType::f32) {
    for (int64_t i = 0; i < count; ++i)
      use(i, vload(reinterpret_cast<const float*>(plain) + 16 * i));
  } else if constexpr (T == DType::f16) {
    for (int64_t i = 0; i < count; ++i) use(i, vload_f16(plain + i * l.code_bytes));
  } else if constexpr (T == DType::bf16) {
    for (int64_t i = 0; i < (count + 1) / 2; ++i) each_of_pair(plain, i, count, use);
  } else {
    const PanelPointers<T> p(panel, cols / kBlock, first / kBlock);
    for (int64_t b = 0; b < count / kBlock; ++b) {
      const Scales s = block_scales<T>(p.sub + b * l.sub_bytes, p.super + b / 8 * l.super_bytes);
      each_line<T, 0>(p.codes + b * l.code_bytes, s,
                      [&](int64_t i, Vf w) { use(b * kBlock + i, w); });
    }
  }
}

template <DType T, int M>
inline void f32_dot(const uint8_t* panel, int64_t cols, const float* x, int64_t x_stride, float* y,
                    int64_t y_stride) {
  Vf acc[M];
  for (int t = 0; t < M; ++t) acc[t] = vzero();
  each_input<T>(panel, cols, 0, cols, [&](int64_t i, Vf w) {
    for (int t = 0; t < M; ++t) acc[t] = vfma(w, vset(x[t * x_stride + i]), acc[t]);
  });
  for (int t = 0; t < M; ++t) vstore(y + t * y_stride, acc[t]);
}

// As many tokens as a tile holds, then the rest in smaller ones.
template <DType T, int M>
inline void f32_dots(const uint8_t* panel, int64_t cols, const float* x, int64_t x_stride,
                     int64_t t, int64_t tokens, float* y, int64_t y_stride) {
  for (; t + M <= tokens; t += M)
    f32_dot<T, M>(panel, cols, x + t * x_stride, x_stride, y + t * y_stride, y_stride);
  if constexpr (M > 1) f32_dots<T, M / 2>(panel, cols, x, x_stride, t, tokens, y, y_stride);
}

// Adds `count` inputs, whose weights are w[count][16], to the sums in y.
template <int M>
inline void f32_tile(const float* w, int64_t count, bool is_first, const float* x, int64_t x_stride,
                     float* y, int64_t y_stride) {
  Vf acc[M];
  for (int t = 0; t < M; ++t) acc[t] = is_first ? vzero() : vload(y + t * y_stride);
  for (int64_t i = 0; i < count; ++i) {
    const Vf weights = vload(w + i * kPanelRows);
    for (int t = 0; t < M; ++t) acc[t] = vfma(weights, vset(x[t * x_stride + i]), acc[t]);
  }
  for (int t = 0; t < M; ++t) vstore(y + t * y_stride, acc[t]);
}

template <int M>
inline void f32_tiles(const float* w, int64_t count, bool is_first, const float* x,
                      int64_t x_stride, int64_t t, int64_t tokens, float* y, int64_t y_stride) {
  for (; t + M <= tokens; t += M)
    f32_tile<M>(w, count, is_first, x + t * x_stride, x_stride, y + t * y_stride, y_stride);
  if constexpr (M > 1) f32_tiles<M / 2>(w, count, is_first, x, x_stride, t, tokens, y, y_stride);
}

template <DType T>
void f32_gemm_panel(const uint8_t* panel, int64_t cols, const float* x, int64_t x_stride,
                    int64_t tokens, float* y, int64_t y_stride) {
  constexpr int64_t kInputs = kF32Chunk * kBlock;
  alignas(64) float weights[kInputs * kPanelRows];
  for (int64_t first = 0; first < cols; first += kInputs) {
    const int64_t count = cols - first < kInputs ? cols - first : kInputs;
    each_input<T>(panel, cols, first, count,
                  [&](int64_t i, Vf w) { vstore(weights + i * kPanelRows, w); });
    f32_tiles<kTokenTile>(weights, count, first == 0, x + first, x_stride, 0, tokens, y, y_stride);
  }
}

template <DType T>
void f32_panels(const PanelMatrix& w, int64_t begin, int64_t end, const float* x, int64_t x_stride,
                int64_t tokens, float* y, int64_t y_stride) {
  for (int64_t p = begin; p < end; ++p) {
    const uint8_t* panel = w.data + p * static_cast<int64_t>(w.panel_bytes);
    float* out = y + p * kPanelRows;
    if constexpr (kLayout<T>.scales == ScaleKind::none)
      f32_dots<T, kTokenTile>(panel, w.cols, x, x_stride, 0, tokens, out, y_stride);
    else if (tokens <= 2)
      f32_dots<T, 2>(panel, w.cols, x, x_stride, 0, tokens, out, y_stride);
    else
      f32_gemm_panel<T>(panel, w.cols, x, x_stride, tokens, out, y_stride);
  }
}

void matmul_f32(const PanelMatrix& w, int64_t begin, int64_t end, const float* x, int64_t x_stride,
                int64_t tokens, float* y, int64_t y_stride) {
  switch (w.type) {
    case DType::f32:
      return f32_panels<DType::f32>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::f16:
      return f32_panels<DType::f16>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::bf16:
      return f32_panels<DType::bf16>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q4_0:
      return f32_panels<DType::q4_0>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q4_1:
      return f32_panels<DType::q4_1>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q5_0:
      return f32_panels<DType::q5_0>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q5_1:
      return f32_panels<DType::q5_1>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q8_0:
      return f32_panels<DType::q8_0>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q2_k:
      return f32_panels<DType::q2_k>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q3_k:
      return f32_panels<DType::q3_k>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q4_k:
      return f32_panels<DType::q4_k>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q5_k:
      return f32_panels<DType::q5_k>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q6_k:
      return f32_panels<DType::q6_k>(w, begin, end, x, x_stride, tokens, y, y_stride);
    case DType::q4_z:
      return f32_panels<DType::q4_z>(w, begin, end, x, x_stride, tokens, y, y_stride);
  }
}
