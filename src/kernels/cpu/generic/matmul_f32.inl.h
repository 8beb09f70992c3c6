// Matrix products with fp32 activations over P16 panels: weights become floats a line at a time,
// each used by all tokens of the tile. Each output is one chain of float additions over the inputs
// in ascending order, whatever the tile (I1).

// Input 4*line + kByte of 16 rows as floats, before scaling.
template <DType T, int kByte>
inline Vf code_floats(Line codes) {
  if constexpr (code_bits<T>() == 8)
    return vi_to_float(vi_sar<24>(vi_shl<24 - 8 * kByte>(line_words(codes))));
  else
    return vi_to_float(vi_and(vi_shr<8 * kByte>(line_words(codes)), vi_set(255)));
}

template <DType T, int kByte, int M>
inline void f32_bytes(Line codes, Vf d, Vf m, const float* x, int64_t x_stride, Vf* acc) {
  if constexpr (kByte < 4) {
    Vf w = vmul(d, vsub(code_floats<T, kByte>(codes), vset(static_cast<float>(kLayout<T>.offset))));
    if constexpr (kHasMin<T>) w = vadd(w, m);
    for (int t = 0; t < M; ++t) acc[t] = vfma(w, vset(x[t * x_stride + kByte]), acc[t]);
    f32_bytes<T, kByte + 1, M>(codes, d, m, x, x_stride, acc);
  }
}

template <DType T, int kLine, int M>
inline void f32_lines(const uint8_t* block, const Scales& s, const float* x, int64_t x_stride,
                      Vf* acc) {
  if constexpr (kLine < 8) {
    constexpr int half = kHalves<T> ? kLine / 4 : 0;
    const Vf m = kHasMin<T> ? s.m[half] : vzero();
    f32_bytes<T, 0, M>(code_line<T, kLine>(block), s.d[half], m, x + 4 * kLine, x_stride, acc);
    f32_lines<T, kLine + 1, M>(block, s, x, x_stride, acc);
  }
}

template <DType T>
inline Vf plain_weights(const uint8_t* at) {
  if constexpr (T == DType::f32)
    return vload(reinterpret_cast<const float*>(at));
  else if constexpr (T == DType::f16)
    return vload_f16(at);
  else
    return vload_bf16(at);
}

template <DType T, int M>
inline void f32_tile(const uint8_t* panel, int64_t cols, const float* x, int64_t x_stride, float* y,
                     int64_t y_stride) {
  constexpr PanelLayout l = kLayout<T>;
  Vf acc[M];
  for (int t = 0; t < M; ++t) acc[t] = vzero();
  if constexpr (l.scales == ScaleKind::none) {
    for (int64_t k = 0; k < cols; ++k) {
      const Vf w = plain_weights<T>(panel + k * l.code_bytes);
      for (int t = 0; t < M; ++t) acc[t] = vfma(w, vset(x[t * x_stride + k]), acc[t]);
    }
  } else {
    const int64_t blocks = cols / kBlock;
    const PanelPointers<T> p(panel, blocks);
    for (int64_t b = 0; b < blocks; ++b) {
      const Scales s = block_scales<T>(p.sub + b * l.sub_bytes, p.super + b / 8 * l.super_bytes);
      f32_lines<T, 0, M>(p.codes + b * l.code_bytes, s, x + b * kBlock, x_stride, acc);
    }
  }
  for (int t = 0; t < M; ++t) vstore(y + t * y_stride, acc[t]);
}

template <DType T, int M>
inline void f32_panel(const uint8_t* panel, int64_t cols, const float* x, int64_t x_stride,
                      int64_t t, int64_t tokens, float* y, int64_t y_stride) {
  for (; t + M <= tokens; t += M)
    f32_tile<T, M>(panel, cols, x + t * x_stride, x_stride, y + t * y_stride, y_stride);
  if constexpr (M > 1) f32_panel<T, M / 2>(panel, cols, x, x_stride, t, tokens, y, y_stride);
}

template <DType T>
void f32_panels(const PanelMatrix& w, int64_t begin, int64_t end, const float* x, int64_t x_stride,
                int64_t tokens, float* y, int64_t y_stride) {
  for (int64_t panel = begin; panel < end; ++panel)
    f32_panel<T, kTokenTile>(w.data + panel * static_cast<int64_t>(w.panel_bytes), w.cols, x,
                             x_stride, 0, tokens, y + panel * kPanelRows, y_stride);
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
  }
}
