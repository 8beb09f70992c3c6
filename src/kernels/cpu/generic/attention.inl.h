// Attention over the paged cache, written once against the vocabulary of vec.h. See AttentionItem
// in api.h.
//
// A row is one query head of one token. Each part of 256 positions is computed whole: scores, their
// maximum, exponentials, weighted values; then it is merged into the row's running result. A score
// is one chain over the dimensions and a value one chain over the positions, so neither tiles nor
// block sizes can change a bit.

template <KvType T>
inline Vf load_kv(const uint8_t* p) {
  if constexpr (T == KvType::f32)
    return vload(reinterpret_cast<const float*>(p));
  else if constexpr (T == KvType::f16)
    return vload_f16(p);
  else
    return vload_bf16(p);
}

template <KvType T>
constexpr int kElement = T == KvType::f32 ? 4 : 2;

struct Rows {  // of one item
  const float* q[kMaxAttentionRows];
  int valid[kMaxAttentionRows];  // positions of the current part that the row sees
  float scores[kMaxAttentionRows][kSplit];
  float maximum[kMaxAttentionRows];
  float sum[kMaxAttentionRows];
  float values[kMaxAttentionRows][kMaxHeadDim];
};

inline const uint8_t* block_head(const AttentionItem& item, int position) {
  const KvLayer& kv = *item.kv;
  return kv.base +
         static_cast<size_t>(item.block_table[position / kv.block_size]) * kv.block_stride +
         static_cast<size_t>(item.kv_head) * kv.head_stride;
}

// Scores of rows [r, r + R) for G groups of 16 positions, into columns from `column` on.
template <KvType T, int R, int G>
inline void score_groups(const uint8_t* const* keys, int head_dim, float scale, Rows& rows, int r,
                         int column) {
  Vf acc[G][R];
  for (int g = 0; g < G; ++g)
    for (int i = 0; i < R; ++i) acc[g][i] = vzero();
  for (int d = 0; d < head_dim; ++d) {
    Vf k[G];
    for (int g = 0; g < G; ++g) k[g] = load_kv<T>(keys[g] + d * 16 * kElement<T>);
    for (int i = 0; i < R; ++i) {
      const Vf q = vset(rows.q[r + i][d]);
      for (int g = 0; g < G; ++g) acc[g][i] = vfma(k[g], q, acc[g][i]);
    }
  }
  for (int g = 0; g < G; ++g)
    for (int i = 0; i < R; ++i)
      vstore(rows.scores[r + i] + column + 16 * g, vmul(acc[g][i], vset(scale)));
}

// All rows from r on: as many as a tile holds, then the rest in one tile of their own.
template <KvType T, int R, int G>
inline void score_rows(const uint8_t* const* keys, int head_dim, float scale, Rows& rows, int r,
                       int end, int column) {
  for (; r + R <= end; r += R) score_groups<T, R, G>(keys, head_dim, scale, rows, r, column);
  if constexpr (R > 1) score_rows<T, R - 1, G>(keys, head_dim, scale, rows, r, end, column);
}

template <KvType T, int G>
inline void score_positions(const AttentionItem& item, int position, Rows& rows, int r, int end,
                            int column) {
  const KvLayer& kv = *item.kv;
  const uint8_t* keys[G];
  for (int g = 0; g < G; ++g) {
    const int p = position + 16 * g;
    keys[g] =
        block_head(item, p) + static_cast<int64_t>(p % kv.block_size) * kv.head_dim * kElement<T>;
  }
  score_rows<T, kAttentionTile, G>(keys, kv.head_dim, item.scale, rows, r, end, column);
}

// Dims [d, d + 16 V) of the weighted values of rows [r, r + R) over the part that begins at
// `start`.
template <KvType T, int R, int V>
inline void value_dims(const AttentionItem& item, int start, const Rows& rows, int r, int d,
                       float (*out)[kMaxHeadDim]) {
  const KvLayer& kv = *item.kv;
  const int shared = rows.valid[r];  // rows are ordered: later tokens see more
  const int most = rows.valid[r + R - 1];
  const int64_t stride = static_cast<int64_t>(kv.head_dim) * kElement<T>;
  Vf acc[V][R];
  for (int v = 0; v < V; ++v)
    for (int i = 0; i < R; ++i) acc[v][i] = vzero();
  for (int first = 0; first < most; first += kv.block_size) {
    const uint8_t* values = block_head(item, start + first) + kv.v_offset + d * kElement<T>;
    const int end = first + kv.block_size < most ? first + kv.block_size : most;
    for (int j = first; j < end; ++j, values += stride) {
      Vf x[V];
      for (int v = 0; v < V; ++v) x[v] = load_kv<T>(values + 16 * v * kElement<T>);
      for (int i = 0; i < R; ++i) {
        // Positions that only later rows see: what lies behind a row's end is never touched by it.
        if (j >= shared && j >= rows.valid[r + i]) continue;
        const Vf p = vset(rows.scores[r + i][j]);
        for (int v = 0; v < V; ++v) acc[v][i] = vfma(x[v], p, acc[v][i]);
      }
    }
  }
  for (int v = 0; v < V; ++v)
    for (int i = 0; i < R; ++i) vstore(out[i] + d + 16 * v, acc[v][i]);
}

// Scores become exponentials; returns their sum.
inline float exponentials(float* scores, int valid, float maximum) {
  const int padded = (valid + 15) / 16 * 16;
  for (int j = valid; j < padded; ++j) scores[j] = maximum;
  Vf sum = vzero();
  for (int j = 0; j < padded; j += 16) {
    vstore(scores + j, vexp(vsub(vload(scores + j), vset(maximum))));
    if (j + 16 > valid)
      for (int k = valid; k < padded; ++k) scores[k] = 0;
    sum = vadd(sum, vload(scores + j));
  }
  return horizontal_sum(sum);
}

inline float largest(const float* scores, int valid) {
  float m = scores[0];
  for (int j = 1; j < valid; ++j) m = scores[j] > m ? scores[j] : m;
  return m;
}

inline float scalar_exp(float x) {
  float lanes[16];
  vstore(lanes, vexp(vset(x)));
  return lanes[0];
}

// Joins a part (maximum, sum, values) to a row's result over the parts before it.
inline void merge(Rows& rows, int r, float maximum, float sum, const float* values, int head_dim) {
  const float m = rows.maximum[r] > maximum ? rows.maximum[r] : maximum;
  const float before = scalar_exp(rows.maximum[r] - m), now = scalar_exp(maximum - m);
  for (int d = 0; d < head_dim; d += 16)
    vstore(rows.values[r] + d,
           vfma(vload(values + d), vset(now), vmul(vload(rows.values[r] + d), vset(before))));
  rows.sum[r] = rows.sum[r] * before + sum * now;
  rows.maximum[r] = m;
}

// The first or only part of a row's result.
inline void take(Rows& rows, int r, float maximum, float sum, const float* values, int head_dim) {
  rows.maximum[r] = maximum;
  rows.sum[r] = sum;
  for (int d = 0; d < head_dim; d += 16) vstore(rows.values[r] + d, vload(values + d));
}

template <KvType T, int R>
inline void part_values(const AttentionItem& item, int start, bool joins, Rows& rows, int r,
                        int end, const float* maxima, const float* sums) {
  const int head_dim = item.kv->head_dim;
  for (; r + R <= end; r += R) {
    float values[R][kMaxHeadDim];
    constexpr int V = R <= kAttentionTile / 2 ? 2 * kAttentionSpan : kAttentionSpan;
    int d = 0;
    for (; d + 16 * V <= head_dim; d += 16 * V)
      value_dims<T, R, V>(item, start, rows, r, d, values);
    for (; d < head_dim; d += 16) value_dims<T, R, 1>(item, start, rows, r, d, values);
    for (int i = 0; i < R; ++i) {
      if (joins)
        merge(rows, r + i, maxima[r + i], sums[r + i], values[i], head_dim);
      else
        take(rows, r + i, maxima[r + i], sums[r + i], values[i], head_dim);
    }
  }
  if constexpr (R > 1) part_values<T, R - 1>(item, start, joins, rows, r, end, maxima, sums);
}

inline int row_count(const AttentionItem& item) { return item.tokens * item.group; }

// Positions that row r sees.
inline int row_context(const AttentionItem& item, int r) {
  return item.first_position + r / item.group + 1;
}

// The part from position `start` on, of all rows that see any of it; joined to what the rows hold,
// or in its place.
template <KvType T>
inline void attend_part(const AttentionItem& item, int start, bool joins, Rows& rows) {
  const int count = row_count(item);
  int first_row = 0;  // rows of earlier tokens may end before this part
  for (int r = 0; r < count; ++r) {
    const int left = row_context(item, r) - start;
    rows.valid[r] = left > kSplit ? kSplit : left;
    if (left <= 0) first_row = r + 1;
  }
  const int most = rows.valid[count - 1];
  int j = 0;
  for (; j + 16 * (kAttentionSpan - 1) < most; j += 16 * kAttentionSpan)
    score_positions<T, kAttentionSpan>(item, start + j, rows, first_row, count, j);
  for (; j < most; j += 16) score_positions<T, 1>(item, start + j, rows, first_row, count, j);
  float maxima[kMaxAttentionRows], sums[kMaxAttentionRows];
  for (int r = first_row; r < count; ++r) {
    maxima[r] = largest(rows.scores[r], rows.valid[r]);
    sums[r] = exponentials(rows.scores[r], rows.valid[r], maxima[r]);
  }
  part_values<T, kAttentionTile>(item, start, joins, rows, first_row, count, maxima, sums);
}

inline void write_row(const AttentionItem& item, int r, const float* values, float sum) {
  const int head_dim = item.kv->head_dim;
  float* out = item.out + r / item.group * item.out_stride + r % item.group * head_dim;
  for (int d = 0; d < head_dim; d += 16) vstore(out + d, vdiv(vload(values + d), vset(sum)));
}

// A row of one part in item.partial: its values, then maximum and sum.
inline float* partial_row(const AttentionItem& item, int part, int r) {
  return item.partial +
         (static_cast<int64_t>(part) * row_count(item) + r) * (item.kv->head_dim + 2);
}

template <KvType T>
inline void attend(const AttentionItem& item) {
  const int count = row_count(item), head_dim = item.kv->head_dim;
  Rows rows;
  for (int r = 0; r < count; ++r)
    rows.q[r] = item.q + r / item.group * item.q_stride + r % item.group * head_dim;
  if (item.part == kAllParts) {
    for (int start = 0; start < row_context(item, count - 1); start += kSplit)
      attend_part<T>(item, start, start > 0, rows);
    for (int r = 0; r < count; ++r) write_row(item, r, rows.values[r], rows.sum[r]);
    return;
  }
  const int start = item.part * kSplit;
  attend_part<T>(item, start, false, rows);
  for (int r = 0; r < count; ++r) {
    if (row_context(item, r) <= start) continue;
    float* to = partial_row(item, item.part, r);
    for (int d = 0; d < head_dim; d += 16) vstore(to + d, vload(rows.values[r] + d));
    to[head_dim] = rows.maximum[r];
    to[head_dim + 1] = rows.sum[r];
  }
}

void merge_attention(const AttentionItem& item) {
  const int head_dim = item.kv->head_dim;
  Rows rows;
  for (int r = 0; r < row_count(item); ++r) {
    for (int part = 0; part * kSplit < row_context(item, r); ++part) {
      const float* from = partial_row(item, part, r);
      if (part == 0)
        take(rows, r, from[head_dim], from[head_dim + 1], from, head_dim);
      else
        merge(rows, r, from[head_dim], from[head_dim + 1], from, head_dim);
    }
    write_row(item, r, rows.values[r], rows.sum[r]);
  }
}

void attention(const AttentionItem& item) {
  switch (item.kv->type) {
    case KvType::f32:
      return attend<KvType::f32>(item);
    case KvType::f16:
      return attend<KvType::f16>(item);
    case KvType::bf16:
      return attend<KvType::bf16>(item);
  }
}

// 16 values at a time into the cache's type. bf16 rounds to nearest even, by hand: not every ISA
// can.
template <KvType T>
inline void round_16(const float* x, void* out) {
  if constexpr (T == KvType::f32) {
    vstore(static_cast<float*>(out), vload(x));
  } else if constexpr (T == KvType::f16) {
    vstore_f16(static_cast<uint16_t*>(out), vload(x));
  } else {
    for (int i = 0; i < 16; ++i) static_cast<uint16_t*>(out)[i] = f32_to_bf16(x[i]);
  }
}

template <KvType T>
inline void store_typed(const KvLayer& kv, uint8_t* head, int position, const float* k,
                        const float* v) {
  constexpr int64_t e = kElement<T>;
  uint8_t* key =
      head + (static_cast<int64_t>(position / 16) * kv.head_dim * 16 + position % 16) * e;
  uint8_t* value = head + kv.v_offset + static_cast<int64_t>(position) * kv.head_dim * e;
  for (int d = 0; d < kv.head_dim; d += 16) {
    alignas(64) uint8_t rounded[16 * e];
    round_16<T>(k + d, rounded);
    for (int i = 0; i < 16; ++i) __builtin_memcpy(key + (d + i) * 16 * e, rounded + i * e, e);
    round_16<T>(v + d, value + d * e);
  }
}

void store_kv(const KvLayer& kv, int32_t block, int kv_head, int position, const float* k,
              const float* v) {
  uint8_t* head = kv.base + static_cast<size_t>(block) * kv.block_stride +
                  static_cast<size_t>(kv_head) * kv.head_stride;
  switch (kv.type) {
    case KvType::f32:
      return store_typed<KvType::f32>(kv, head, position, k, v);
    case KvType::f16:
      return store_typed<KvType::f16>(kv, head, position, k, v);
    case KvType::bf16:
      return store_typed<KvType::bf16>(kv, head, position, k, v);
  }
}
