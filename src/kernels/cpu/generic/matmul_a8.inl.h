// Matrix products with rounded activations (A8) over P16 panels. Two kernels, the same sums:
//   dot_panel   a few tokens: codes go from the panel to registers; bound by reading the weights
//   gemm        more: a chunk of a panel is unpacked once and multiplied with all tokens of a slab
// Each output is one chain of float additions, in the order that kChunk (api.h) states, whatever
// the tile (I1).

constexpr int kDotTokens = 4;    // at most so many for dot_panel,
constexpr int kDotChunks = 128;  // and of so many chunks: 98304 inputs
constexpr int kSlab = 256;       // tokens whose activations of one chunk (2 x 196 KB) fit L2,
constexpr int kSlabPanels = 16;  // beside the results of so many panels (262 KB)

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

constexpr int log2_of(int power) {
  int log = 0;
  while (power > 1) {
    power /= 2;
    ++log;
  }
  return log;
}

// ---- Chunks of up to kChunk blocks of a panel, packed or unpacked: the same codes and scales.

template <DType T>
struct PackedChunk {
  static constexpr int kBits = code_bits<T>();
  static constexpr int kOffset = kLayout<T>.offset + kBias<kBits>;
  static constexpr int kParts = kHalves<T> ? 2 : 1, kLines = 8 / kParts;
  static constexpr bool kMin = kHasMin<T>;
  static constexpr int kPanels = 1;
  PanelPointers<T> p;
  int64_t panel_bytes;

  template <int kLine>
  inline Line line(int64_t b, int) const {
    return multiplicand<kBits>(code_line<T, kLine>(p.codes + b * kLayout<T>.code_bytes));
  }
  inline Scales scales(int64_t b, int) const {
    return block_scales<T>(p.sub + b * kLayout<T>.sub_bytes,
                           p.super + b / 8 * kLayout<T>.super_bytes);
  }
  // Weights come from memory faster than the hardware's own prefetcher asks for them, since a panel
  // is several short streams: each block fetches the same block of a later panel.
  inline void fetch(int64_t b, int64_t panels_ahead) const {
    const int64_t ahead = panels_ahead * panel_bytes;
    const uint8_t* codes = p.codes + ahead + b * kLayout<T>.code_bytes;
    for (int i = 0; i < kLayout<T>.code_bytes; i += 64) __builtin_prefetch(codes + i);
    if (b * kLayout<T>.sub_bytes % 64 == 0)
      __builtin_prefetch(p.sub + ahead + b * kLayout<T>.sub_bytes);
  }
  inline void fetch_ahead(int64_t b) const { fetch(b, 1); }
};

// Of some panels side by side: each activation that is loaded serves them all.
template <class Packed, int kPanelCount>
struct UnpackedChunk {
  static constexpr int kBits = Packed::kBits, kOffset = Packed::kOffset;
  static constexpr int kParts = Packed::kParts, kLines = Packed::kLines;
  static constexpr bool kMin = Packed::kMin;
  static constexpr int kPanels = kPanelCount;
  alignas(64) uint8_t codes[kPanels][kChunk][kBlock * kPanelRows];
  float d[kPanels][kChunk][kParts][kPanelRows];
  float m[kPanels][kChunk][kParts][kPanelRows];
  const Packed* source;  // of the first panel, while the next panels are to be fetched; or nullptr

  template <int kLine>
  inline Line line(int64_t b, int panel) const {
    return line_load(codes[panel][b] + 64 * kLine);
  }
  inline Scales scales(int64_t b, int panel) const {
    Scales s;
    for (int part = 0; part < kParts; ++part) {
      s.d[part] = vload(d[panel][b][part]);
      if constexpr (kMin) s.m[part] = vload(m[panel][b][part]);
    }
    return s;
  }
  inline void fetch_ahead(int64_t b) const {
    if (!source) return;
    for (int p = 0; p < kPanels; ++p) source->fetch(b, kPanels + p);
  }
};

template <class Packed, int kLine>
[[gnu::always_inline]] inline void unpack_lines(const Packed& from, int64_t b, uint8_t* to) {
  if constexpr (kLine < 8) {
    line_store(to + 64 * kLine, from.template line<kLine>(b, 0));
    unpack_lines<Packed, kLine + 1>(from, b, to);
  }
}

template <class Packed, class Unpacked>
inline void unpack(const Packed& from, int64_t blocks, int panel, Unpacked& to) {
  for (int64_t b = 0; b < blocks; ++b) {
    unpack_lines<Packed, 0>(from, b, to.codes[panel][b]);
    const Scales s = from.scales(b, 0);
    for (int part = 0; part < Packed::kParts; ++part) {
      vstore(to.d[panel][b][part], s.d[part]);
      if constexpr (Packed::kMin) vstore(to.m[panel][b][part], s.m[part]);
    }
  }
}

template <class Chunk>
using ChunkDot = Dot<Chunk::kBits, Chunk::kLines>;

// ---- Blocks of a chunk times M tokens. Sums are numbered panel * M + token; q is that of the
// first token.

template <class Chunk, int kLine, int kEnd, int M>
[[gnu::always_inline]] inline void add_lines(const Chunk& w, int64_t b, const int8_t* q,
                                             ChunkDot<Chunk>* dots) {
  if constexpr (kLine < kEnd) {
    Line codes[Chunk::kPanels];
    for (int p = 0; p < Chunk::kPanels; ++p) codes[p] = w.template line<kLine>(b, p);
    for (int m = 0; m < M; ++m)
      for (int p = 0; p < Chunk::kPanels; ++p)
        dots[p * M + m].template add<kLine>(codes[p], q + m * kBlock + 4 * kLine);
    add_lines<Chunk, kLine + 1, kEnd, M>(w, b, q, dots);
  }
}

// Sum of the multipliers that a part of a block has; sums: of the whole, of the first half.
template <int kParts>
inline Vi part_sum(const int32_t* sums, int part) {
  if constexpr (kParts == 1) return vi_set(sums[0]);
  return part == 0 ? vi_set(sums[1]) : vi_sub(vi_set(sums[0]), vi_set(sums[1]));
}

template <class Chunk>
inline Vf without_offset(Vi dot, const int32_t* sums, int part) {
  if constexpr (Chunk::kOffset != 0)
    dot = vi_sub(dot, vi_shl<log2_of(Chunk::kOffset)>(part_sum<Chunk::kParts>(sums, part)));
  return vi_to_float(dot);
}

// The terms of q of one part of a block. i: A8 index of the first token's block.
template <class Chunk, int kPart, int M>
[[gnu::always_inline]] inline void add_part(const Chunk& w, const Scales* s, const A8& x, int64_t b,
                                            int64_t i, Vf* acc) {
  ChunkDot<Chunk> dots[Chunk::kPanels * M];
  add_lines<Chunk, kPart * Chunk::kLines, (kPart + 1) * Chunk::kLines, M>(w, b, x.q + i * kBlock,
                                                                          dots);
  for (int m = 0; m < M; ++m)
    for (int p = 0; p < Chunk::kPanels; ++p) {
      Vf& sum = acc[p * M + m];
      const Vf dot =
          without_offset<Chunk>(dots[p * M + m].sum_of_products(), x.sum + 4 * (i + m), kPart);
      sum = vfma(vmul(s[p].d[kPart], vset(x.d[i + m])), dot, sum);
      if constexpr (Chunk::kMin) {
        const float total = Chunk::kParts == 1 ? x.s[i + m] : x.s_half[2 * (i + m) + kPart];
        sum = vfma(s[p].m[kPart], vset(total), sum);
      }
    }
}

template <class Chunk, int M>
[[gnu::always_inline]] inline void add_high(const Chunk& w, const A8& x, int64_t i, int64_t blocks,
                                            Vf* acc) {
  for (int64_t b = 0; b < blocks; ++b, i += kA8Tokens) {
    w.fetch_ahead(b);
    Scales s[Chunk::kPanels];
    for (int p = 0; p < Chunk::kPanels; ++p) s[p] = w.scales(b, p);
    add_part<Chunk, 0, M>(w, s, x, b, i, acc);
    if constexpr (Chunk::kParts == 2) add_part<Chunk, 1, M>(w, s, x, b, i, acc);
  }
}

template <class Chunk, int kPart>
[[gnu::always_inline]] inline void add_low_part(const Chunk& w, const A8& x, int64_t b, int64_t i,
                                                Vf* acc) {
  ChunkDot<Chunk> dots[Chunk::kPanels];
  add_lines<Chunk, kPart * Chunk::kLines, (kPart + 1) * Chunk::kLines, 1>(
      w, b, x.q_low + i * kBlock, dots);
  for (int p = 0; p < Chunk::kPanels; ++p) {
    const Vf dot = without_offset<Chunk>(dots[p].sum_of_products(), x.sum + 4 * i + 2, kPart);
    const Vf d = vmul(w.scales(b, p).d[kPart], vset(x.d[i]));
    acc[p] = vfma(vmul(d, vset(1.0f / 128)), dot, acc[p]);
  }
}

// Which blocks of a chunk are wide for which of eight tokens: 8 * block + token, ascending.
struct WideList {
  int count = 0;
  uint8_t entries[kChunk * kA8Tokens];
};

inline void list_wide(const A8& x, int64_t i, int64_t blocks, int tokens, WideList& list) {
  list.count = 0;
  for (int64_t b = 0; b < blocks; ++b, i += kA8Tokens) {
    uint64_t wide;
    __builtin_memcpy(&wide, x.wide + i, 8);
    if (wide == 0) continue;
    for (int m = 0; m < tokens; ++m) {
      list.entries[list.count] = static_cast<uint8_t>(8 * b + m);
      list.count += x.wide[i + m];
    }
  }
}

// Sums of some panels and eight tokens, while they wait in memory.
using GroupSums = float[][kA8Tokens][kPanelRows];

// The terms of q_low. i: A8 index of the chunk's first block of the group's first token.
template <class Chunk>
inline void add_low(const Chunk& w, const A8& x, int64_t i, const WideList& list, GroupSums sums) {
  for (int e = 0; e < list.count; ++e) {
    const int b = list.entries[e] / kA8Tokens, m = list.entries[e] % kA8Tokens;
    Vf acc[Chunk::kPanels];
    for (int p = 0; p < Chunk::kPanels; ++p) acc[p] = vload(sums[p][m]);
    add_low_part<Chunk, 0>(w, x, b, i + list.entries[e], acc);
    if constexpr (Chunk::kParts == 2) add_low_part<Chunk, 1>(w, x, b, i + list.entries[e], acc);
    for (int p = 0; p < Chunk::kPanels; ++p) vstore(sums[p][m], acc[p]);
  }
}

inline int64_t group_index(const A8& x, int64_t t, int64_t block) {
  return (t / kA8Tokens * (x.cols / kBlock) + block) * kA8Tokens;
}

// One panel times the first tokens, at most M of them. wide: of each chunk.
template <DType T, int M>
void dot_panel(const uint8_t* panel, int64_t panel_bytes, const A8& x, const WideList* wide,
               int64_t tokens, float* y, int64_t y_stride) {
  const int64_t blocks = x.cols / kBlock;
  Vf acc[M];
  for (int m = 0; m < M; ++m) acc[m] = vzero();
  for (int64_t begin = 0; begin < blocks; begin += kChunk, ++wide) {
    const PackedChunk<T> w{PanelPointers<T>(panel, blocks, begin), panel_bytes};
    const int64_t i = group_index(x, 0, begin);
    add_high<PackedChunk<T>, M>(w, x, i, least(blocks - begin, kChunk), acc);
    if (wide->count == 0) continue;
    float sums[1][kA8Tokens][kPanelRows];
    for (int m = 0; m < M; ++m) vstore(sums[0][m], acc[m]);
    add_low(w, x, i, *wide, sums);
    for (int m = 0; m < M; ++m) acc[m] = vload(sums[0][m]);
  }
  for (int64_t m = 0; m < tokens; ++m) vstore(y + m * y_stride, acc[m]);
}

// What some tokens are multiplied with in one go.
struct SlabOfTokens {
  const A8& x;
  int64_t t, tokens;            // from token t on
  int64_t first_block, blocks;  // of the chunk
  float* y;                     // of token 0
  int64_t y_stride;
  WideList wide[kSlab / kA8Tokens];  // of each group

  int64_t in_group(int64_t g) const { return least(tokens - g, kA8Tokens); }
  int64_t index(int64_t g) const { return group_index(x, t + g, first_block); }
  void list_wide_blocks() {
    for (int64_t g = 0; g < tokens; g += kA8Tokens)
      list_wide(x, index(g), blocks, static_cast<int>(in_group(g)), wide[g / kA8Tokens]);
  }
};

// An unpacked chunk times the tokens of group g, added to what the chunks before it left in y.
template <class Chunk>
void gemm_group(const Chunk& w, const SlabOfTokens& slab, int64_t g, int64_t panel) {
  constexpr int P = Chunk::kPanels, M = kGemmSums / P;
  const int64_t tokens = slab.in_group(g), stride = slab.y_stride;
  float* y = slab.y + (slab.t + g) * stride + panel * kPanelRows;
  float sums[P][kA8Tokens][kPanelRows];
  for (int64_t first = 0; first < tokens; first += M) {
    Vf acc[P * M];
    for (int p = 0; p < P; ++p)
      for (int m = 0; m < M; ++m)
        acc[p * M + m] = slab.first_block == 0 || first + m >= tokens
                             ? vzero()
                             : vload(y + (first + m) * stride + p * kPanelRows);
    add_high<Chunk, M>(w, slab.x, slab.index(g) + first, slab.blocks, acc);
    for (int p = 0; p < P; ++p)
      for (int m = 0; m < M; ++m) vstore(sums[p][first + m], acc[p * M + m]);
  }
  add_low(w, slab.x, slab.index(g), slab.wide[g / kA8Tokens], sums);
  for (int64_t m = 0; m < tokens; ++m)
    for (int p = 0; p < P; ++p) vstore(y + m * stride + p * kPanelRows, vload(sums[p][m]));
}

// kPanels panels from `panel` on times a slab.
template <DType T, int kPanels>
void gemm_panels(const PanelMatrix& w, int64_t panel, const SlabOfTokens& slab) {
  const auto panel_bytes = static_cast<int64_t>(w.panel_bytes);
  const auto packed = [&](int64_t p) {
    return PackedChunk<T>{
        PanelPointers<T>(w.data + p * panel_bytes, slab.x.cols / kBlock, slab.first_block),
        panel_bytes};
  };
  const PackedChunk<T> first = packed(panel);
  UnpackedChunk<PackedChunk<T>, kPanels> chunk;
  for (int p = 0; p < kPanels; ++p) unpack(packed(panel + p), slab.blocks, p, chunk);
  for (int64_t g = 0; g < slab.tokens; g += kA8Tokens) {
    chunk.source = g == 0 ? &first : nullptr;
    gemm_group(chunk, slab, g, panel);
  }
}

template <DType T>
void gemm(const PanelMatrix& w, int64_t begin, int64_t end, const A8& x, int64_t tokens, float* y,
          int64_t y_stride) {
  const int64_t blocks = x.cols / kBlock;
  for (int64_t t = 0; t < tokens; t += kSlab)
    for (int64_t first = begin; first < end; first += kSlabPanels)
      for (int64_t b = 0; b < blocks; b += kChunk) {
        SlabOfTokens slab{x,        t, least(tokens - t, kSlab), b, least(blocks - b, kChunk), y,
                          y_stride, {}};
        slab.list_wide_blocks();
        const int64_t last = least(end, first + kSlabPanels);
        int64_t panel = first;
        for (; panel + kGemmPanels <= last; panel += kGemmPanels)
          gemm_panels<T, kGemmPanels>(w, panel, slab);
        for (; panel < last; ++panel) gemm_panels<T, 1>(w, panel, slab);
      }
}

template <DType T, int M>
void dot_panels(const PanelMatrix& w, int64_t begin, int64_t end, const A8& x, int64_t tokens,
                float* y, int64_t y_stride) {
  const auto panel_bytes = static_cast<int64_t>(w.panel_bytes);
  const int64_t blocks = x.cols / kBlock;
  WideList wide[kDotChunks];
  for (int64_t b = 0; b < blocks; b += kChunk)
    list_wide(x, group_index(x, 0, b), least(blocks - b, kChunk), static_cast<int>(tokens),
              wide[b / kChunk]);
  for (int64_t panel = begin; panel < end; ++panel)
    dot_panel<T, M>(w.data + panel * panel_bytes, panel_bytes, x, wide, tokens,
                    y + panel * kPanelRows, y_stride);
}

template <DType T>
void a8_panels(const PanelMatrix& w, int64_t begin, int64_t end, const A8& x, int64_t tokens,
               float* y, int64_t y_stride) {
  if (tokens > kDotTokens || x.cols > kDotChunks * kChunk * kBlock)
    return gemm<T>(w, begin, end, x, tokens, y, y_stride);
  if (tokens == 1) return dot_panels<T, 1>(w, begin, end, x, tokens, y, y_stride);
  if (tokens == 2) return dot_panels<T, 2>(w, begin, end, x, tokens, y, y_stride);
  dot_panels<T, kDotTokens>(w, begin, end, x, tokens, y, y_stride);
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
    case DType::q4_z:
      return a8_panels<DType::q4_z>(w, begin, end, x, tokens, y, y_stride);
    default:
      return;
  }
}
