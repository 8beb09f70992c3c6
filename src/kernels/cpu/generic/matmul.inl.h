// Matrix products over P16 panels, written once against the vocabulary of vec.h.
// Each output is one chain of float additions over the blocks in ascending order, whatever the tile
// (I1).

template <DType T>
constexpr PanelLayout kLayout = kPanelLayouts[static_cast<int>(T)];

template <DType T>
constexpr int code_bits() {
  constexpr PanelLayout l = kLayout<T>;
  if (l.plane4 < 0 && l.plane2 < 0) return 8;
  return (l.plane4 >= 0 ? 4 : 0) + (l.plane2 >= 0 ? 2 : 0) + (l.plane1 >= 0 ? 1 : 0);
}

template <DType T>
constexpr bool kHalves =
    kLayout<T>.scales == ScaleKind::k_sub16 || kLayout<T>.scales == ScaleKind::k_sub16_min;
template <DType T>
constexpr bool kHasMin =
    kLayout<T>.scales == ScaleKind::d_m || kLayout<T>.scales == ScaleKind::k_sub32 ||
    kLayout<T>.scales == ScaleKind::k_sub16_min;

// Line kLine of a block as codes, one per byte.
template <DType T, int kLine>
inline Line code_line(const uint8_t* block) {
  constexpr PanelLayout l = kLayout<T>;
  if constexpr (code_bits<T>() == 8) {
    return line_load(block + 64 * kLine);
  } else {
    Line codes;
    if constexpr (l.plane4 >= 0)
      codes = line_and(
          line_shift < kLine < 4 ? 0 : -4 > (line_load(block + l.plane4 + 64 * (kLine % 4))), 15);
    if constexpr (l.plane2 >= 0) {
      const Line two = line_and(
          line_shift<l.shift2 - 2 * (kLine % 4)>(line_load(block + l.plane2 + 64 * (kLine / 4))),
          3 << l.shift2);
      if constexpr (l.plane4 >= 0)
        codes = line_or(codes, two);
      else
        codes = two;
    }
    if constexpr (l.plane1 >= 0)
      codes = line_or(codes, line_and(line_shift<l.shift1 - kLine>(line_load(block + l.plane1)),
                                      1 << l.shift1));
    return codes;
  }
}

struct Scales {  // of 16 rows: w = d * (c - offset) + m; [1] is the second half of a block where
                 // halves differ
  Vf d[2];
  Vf m[2];
};

inline Vf vneg(Vf x) { return vsub(vset(-0.0f), x); }

template <DType T>
inline Scales block_scales(const uint8_t* sub, const uint8_t* super) {
  constexpr ScaleKind kind = kLayout<T>.scales;
  Scales s;
  if constexpr (kind == ScaleKind::d || kind == ScaleKind::d_m) s.d[0] = vload_f16(sub);
  if constexpr (kind == ScaleKind::d_m) s.m[0] = vload_f16(sub + 32);
  if constexpr (kind == ScaleKind::k_sub32) {
    s.d[0] = vmul(vload_f16(super), vload_u8(sub));
    s.m[0] = vneg(vmul(vload_f16(super + 32), vload_u8(sub + 16)));
  }
  if constexpr (kind == ScaleKind::k_sub16)
    for (int half = 0; half < 2; ++half)
      s.d[half] = vmul(vload_f16(super), vload_i8(sub + 16 * half));
  if constexpr (kind == ScaleKind::k_sub16_min) {
    for (int half = 0; half < 2; ++half) {
      uint8_t low[16], high[16];
      for (int r = 0; r < 16; ++r) {
        low[r] = sub[16 * half + r] & 15;
        high[r] = static_cast<uint8_t>(sub[16 * half + r] >> 4);
      }
      s.d[half] = vmul(vload_f16(super), vload_u8(low));
      s.m[half] = vneg(vmul(vload_f16(super + 32), vload_u8(high)));
    }
  }
  return s;
}

// Adds lines [kLine, kEnd) of a block to the sums of M tokens.
template <DType T, int kLine, int kEnd, int M>
inline void add_lines(const uint8_t* block, const int8_t* q, Dot<code_bits<T>()>* dots) {
  if constexpr (kLine < kEnd) {
    const Line codes = code_line<T, kLine>(block);
    for (int m = 0; m < M; ++m) dots[m].template add<kLine>(codes, q + m * kBlock + 4 * kLine);
    add_lines<T, kLine + 1, kEnd, M>(block, q, dots);
  }
}

template <DType T>
struct PanelPointers {
  const uint8_t* codes;
  const uint8_t* sub;
  const uint8_t* super;
  PanelPointers(const uint8_t* panel, int64_t blocks)
      : codes(panel),
        sub(panel + blocks * kLayout<T>.code_bytes),
        super(sub + blocks * kLayout<T>.sub_bytes) {}
};

// What a block's codes minus their offset, times 128 * q + q_low, sum to, per token.
template <DType T, int kFirstLine, int kLastLine, int M>
inline void block_dots(const uint8_t* block, const A8& x, int64_t at, bool wide,
                       const int32_t* q_sums, Vf* out) {
  using BlockDot = Dot<code_bits<T>()>;
  constexpr int kOffset = kLayout<T>.offset + BlockDot::kBias;
  BlockDot dots[M];
  Vi sums[M];
  add_lines<T, kFirstLine, kLastLine, M>(block, x.q + at, dots);
  for (int m = 0; m < M; ++m) sums[m] = vi_shl<7>(dots[m].sum_of_products());
  if (wide) {
    BlockDot low[M];
    add_lines<T, kFirstLine, kLastLine, M>(block, x.q_low + at, low);
    for (int m = 0; m < M; ++m) sums[m] = vi_add(sums[m], low[m].sum_of_products());
  }
  for (int m = 0; m < M; ++m) {
    if constexpr (kOffset != 0) sums[m] = vi_sub(sums[m], vi_set(kOffset * q_sums[m]));
    out[m] = vi_to_float(sums[m]);
  }
}

// Few tokens: the weights come from memory, faster than the hardware's own prefetcher asks for
// them, since a panel is several short streams. Each block fetches the same block of the next
// panel.
constexpr int kPrefetchTokens = 2;

template <DType T>
inline void prefetch_next_panel(const uint8_t* block, const uint8_t* sub, int64_t panel_bytes) {
  for (int i = 0; i < kLayout<T>.code_bytes; i += 64) __builtin_prefetch(block + panel_bytes + i);
  __builtin_prefetch(sub + panel_bytes);
}

// One panel times tokens [t, t + M), which lie in one group of kA8Tokens.
template <DType T, int M>
inline void a8_tile(const uint8_t* panel, int64_t panel_bytes, const A8& x, int64_t t, float* y,
                    int64_t y_stride) {
  constexpr PanelLayout l = kLayout<T>;
  constexpr int kParts = kHalves<T> ? 2 : 1;
  const int64_t blocks = x.cols / kBlock;
  const PanelPointers<T> p(panel, blocks);
  const int64_t first = t / kA8Tokens * blocks * kA8Tokens + t % kA8Tokens;
  Vf acc[M];
  for (int m = 0; m < M; ++m) acc[m] = vzero();
  for (int64_t b = 0; b < blocks; ++b) {
    const uint8_t* block = p.codes + b * l.code_bytes;
    const Scales s = block_scales<T>(p.sub + b * l.sub_bytes, p.super + b / 8 * l.super_bytes);
    if constexpr (M <= kPrefetchTokens)
      prefetch_next_panel<T>(block, p.sub + b * l.sub_bytes, panel_bytes);
    const int64_t i = first + b * kA8Tokens, at = i * kBlock;
    int32_t q_sums[kParts][M];
    Vf dots[kParts][M];
    for (int m = 0; m < M; ++m) {
      const int32_t* halves = x.sum + 2 * (i + m);
      q_sums[0][m] = kHalves<T> ? halves[0] : halves[0] + halves[1];
      if constexpr (kHalves<T>) q_sums[1][m] = halves[1];
    }
    // A token whose own block is not wide adds zeros: the same integers as without the second pass.
    uint8_t wide[M];
    __builtin_memcpy(wide, x.wide + i, M);
    bool any_wide = false;
    for (int m = 0; m < M; ++m) any_wide |= wide[m] != 0;
    block_dots<T, 0, kHalves<T> ? 4 : 8, M>(block, x, at, any_wide, q_sums[0], dots[0]);
    if constexpr (kHalves<T>) block_dots<T, 4, 8, M>(block, x, at, any_wide, q_sums[1], dots[1]);
    for (int m = 0; m < M; ++m) {
      const Vf d = vset(x.d[i + m]);
      for (int part = 0; part < kParts; ++part) {
        acc[m] = vfma(vmul(s.d[part], d), dots[part][m], acc[m]);
        const float q_total = kHalves<T> ? x.s_half[2 * (i + m) + part] : x.s[i + m];
        if constexpr (kHasMin<T>) acc[m] = vfma(s.m[part], vset(q_total), acc[m]);
      }
    }
  }
  for (int m = 0; m < M; ++m) vstore(y + (t + m) * y_stride, acc[m]);
}

// Tokens in tiles of at most kTokenTile: 8, 8, ..., then 4, 2, 1.
template <DType T, int M>
inline void a8_panel(const uint8_t* panel, int64_t panel_bytes, const A8& x, int64_t t,
                     int64_t tokens, float* y, int64_t y_stride) {
  for (; t + M <= tokens; t += M) a8_tile<T, M>(panel, panel_bytes, x, t, y, y_stride);
  if constexpr (M > 1) a8_panel<T, M / 2>(panel, panel_bytes, x, t, tokens, y, y_stride);
}

template <DType T>
void a8_panels(const PanelMatrix& w, int64_t begin, int64_t end, const A8& x, int64_t tokens,
               float* y, int64_t y_stride) {
  for (int64_t panel = begin; panel < end; ++panel)
    a8_panel<T, kTokenTile>(w.data + panel * static_cast<int64_t>(w.panel_bytes),
                            static_cast<int64_t>(w.panel_bytes), x, 0, tokens,
                            y + panel * kPanelRows, y_stride);
}

void matmul_a8(const PanelMatrix& w, int64_t begin, int64_t end, const A8& x, int64_t tokens,
               float* y, int64_t y_stride) {
  switch (w.type) {
    case DType::q4_0:
      return a8_panels<DType::q4_0>(w, begin, end, x, tokens, y, y_stride);
    case DType::q4_1:
      return a8_panels<DType::q4_1>(w, begin, end, x, tokens, y, y_stride);
    case DType::q5_0:
      return a8_panels<DType::q5_0>(w, begin, end, x, tokens, y, y_stride);
    case DType::q5_1:
      return a8_panels<DType::q5_1>(w, begin, end, x, tokens, y, y_stride);
    case DType::q8_0:
      return a8_panels<DType::q8_0>(w, begin, end, x, tokens, y, y_stride);
    case DType::q2_k:
      return a8_panels<DType::q2_k>(w, begin, end, x, tokens, y, y_stride);
    case DType::q3_k:
      return a8_panels<DType::q3_k>(w, begin, end, x, tokens, y, y_stride);
    case DType::q4_k:
      return a8_panels<DType::q4_k>(w, begin, end, x, tokens, y, y_stride);
    case DType::q5_k:
      return a8_panels<DType::q5_k>(w, begin, end, x, tokens, y, y_stride);
    case DType::q6_k:
      return a8_panels<DType::q6_k>(w, begin, end, x, tokens, y, y_stride);
    default:
      return;
  }
}

// ---- fp32 activations: weights become floats a line at a time, each used by all tokens of the
// tile.

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
