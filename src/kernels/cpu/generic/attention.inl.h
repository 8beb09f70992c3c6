// Attention over the paged cache (PagedAttention), written once against the vocabulary of vec.h.
// See AttentionItem in api.h.
//
// Each part of 256 positions is computed whole: scores, their maximum, weights, weighted values;
// then it is merged into the row's running result, as FlashAttention's online softmax and the split
// of Flash-Decoding do, but at places that never move. Scores are in units of ln 2, so that a
// weight is a power of two.

constexpr float kLog2E = 1.44269504088896341f;

// Joins a part (maximum, sum, values) to a row's result over the parts before it.
inline void merge(Rows& rows, int r, float maximum, float sum, const float* values, int head_dim) {
  const float m = rows.maximum[r] > maximum ? rows.maximum[r] : maximum;
  const float before = scalar_exp2(rows.maximum[r] - m), now = scalar_exp2(maximum - m);
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

// The rows that see any of the part from `start` on, and which of its positions each sees.
inline Range rows_of_part(const AttentionItem& item, int start, Rows& rows) {
  const int count = row_count(item);
  Range active = {0, count};
  for (int r = 0; r < count; ++r) {
    const Range seen = row_range(item, r);
    rows.begin[r] = seen.begin > start ? seen.begin - start : 0;
    rows.end[r] = seen.end - start < kSplit ? seen.end - start : kSplit;
    if (rows.end[r] <= 0) active.begin = r + 1;
    if (rows.begin[r] >= kSplit && active.end == count) active.end = r;
  }
  return active;
}

template <class Cache>
inline void score_part(const AttentionItem& item, Range active, Range columns, const Cache& cache,
                       Rows& rows) {
  for (int j = columns.begin; j < columns.end; j += 16 * kStrip) {
    const uint8_t* const* keys = rows.keys + j / 16;
    const int groups = columns.end - j < 16 * kStrip ? (columns.end - j) / 16 : kStrip;
    for_tiles<Cache::kTile>(active.begin, active.end, [&]<int R>(int r) {
      constexpr int G = attention_loads(R);
      int g = 0;
      for (; g + G <= groups; g += G)
        cache.template score<R, G>(keys + g, *item.kv, rows, r, j + 16 * g);
      for (; g < groups; ++g) cache.template score<R, 1>(keys + g, *item.kv, rows, r, j + 16 * g);
    });
  }
}

template <class Cache>
inline void value_part(const AttentionItem& item, int start, Range active, const Cache& cache,
                       const float* maxima, const float* sums, Rows& rows) {
  const int head_dim = item.kv->head_dim;
  for_tiles<Cache::kTile>(active.begin, active.end, [&]<int R>(int r) {
    constexpr int V = attention_loads(R);
    float values[R][kHeadStride];
    int d = 0;
    for (; d + 16 * V <= head_dim; d += 16 * V)
      cache.template values<R, V>(item, rows, r, d, values);
    for (; d < head_dim; d += 16) cache.template values<R, 1>(item, rows, r, d, values);
    for (int i = 0; i < R; ++i) {
      const bool joins = item.part == kAllParts && row_range(item, r + i).begin < start;
      (joins ? merge : take)(rows, r + i, maxima[r + i], sums[r + i], values[i], head_dim);
    }
  });
}

// Whole groups: what lies beside a row's positions is not used.
inline void cap_scores(const AttentionItem& item, int r, Rows& rows) {
  if (item.score_cap == 0) return;
  const int first = rows.begin[r] / 16 * 16, last = (rows.end[r] + 15) / 16 * 16;
  softcap(rows.weights[r] + first, item.score_cap * kLog2E, last - first);
}

// The part from position `start` on, of all rows that see any of it; joined to what a row holds
// unless it is the row's first, or on its own.
template <class Cache>
inline void attend_part(const AttentionItem& item, int start, Range active, Cache& cache,
                        Rows& rows) {
  const Range columns = {rows.begin[active.begin] / 16 * 16,
                         (rows.end[active.end - 1] + 15) / 16 * 16};
  find_groups(item, start, columns, Cache::group_bytes(item.kv->head_dim), rows);
  score_part(item, active, columns, cache, rows);
  float maxima[kMaxAttentionRows], sums[kMaxAttentionRows];
  for (int r = active.begin; r < active.end; ++r) {
    cap_scores(item, r, rows);
    softmax(rows.weights[r], rows.begin[r], rows.end[r], maxima[r], sums[r]);
    cache.set_weights(item, columns, rows, r);
  }
  value_part(item, start, active, cache, maxima, sums, rows);
}

inline void write_row(const AttentionItem& item, int r, const float* values, float sum) {
  const int head_dim = item.kv->head_dim;
  float* out = item.out + r / item.group * item.out_stride + r % item.group * head_dim;
  for (int d = 0; d < head_dim; d += 16) vstore(out + d, vdiv(vload(values + d), vset(sum)));
}

// A row of one part in item.partial: its values, then maximum and sum.
inline float* partial_row(const AttentionItem& item, int part, int r) {
  const int row_floats = item.kv->head_dim + 2;
  if (item.shared)
    return item.shared[r / item.group].partial + r % item.group * int64_t{row_floats};
  return item.partial + (static_cast<int64_t>(part) * row_count(item) + r) * row_floats;
}

// Joins the parts in item.partial that row r sees any of, those before part `last`.
inline void join_parts(const AttentionItem& item, int r, int last, Rows& rows) {
  const int head_dim = item.kv->head_dim, first = row_range(item, r).begin / kSplit;
  for (int part = first; part < last; ++part) {
    const float* from = partial_row(item, part, r);
    (part == first ? take : merge)(rows, r, from[head_dim], from[head_dim + 1], from, head_dim);
  }
}

inline void write_partial(const AttentionItem& item, Range active, const Rows& rows) {
  const int head_dim = item.kv->head_dim;
  for (int r = active.begin; r < active.end; ++r) {
    float* to = partial_row(item, item.part, r);
    for (int d = 0; d < head_dim; d += 16) vstore(to + d, vload(rows.values[r] + d));
    to[head_dim] = rows.maximum[r];
    to[head_dim + 1] = rows.sum[r];
  }
}

template <class Cache>
inline void attend(const AttentionItem& item) {
  const int count = row_count(item), head_dim = item.kv->head_dim;
  const bool alone = item.part != kAllParts;
  int start = first_part(item) * kSplit;
  const int end = alone ? start + 1 : context_end(item);
  Rows rows;
  Cache cache;
  for (int r = 0; r < count; ++r) {
    cache.set_query(r, row_query(item, r), item.scale * kLog2E, head_dim);
    if (!alone) join_parts(item, r, item.parts_done, rows);
  }
  for (; start < end; start += kSplit) {
    const Range active = rows_of_part(item, start, rows);
    if (active.begin >= active.end) continue;
    attend_part(item, start, active, cache, rows);
    if (alone) return write_partial(item, active, rows);
  }
  if (alone) return;
  for (int r = 0; r < count; ++r) write_row(item, r, rows.values[r], rows.sum[r]);
}

void merge_attention(const AttentionItem& item) {
  Rows rows;
  for (int r = 0; r < row_count(item); ++r) {
    join_parts(item, r, (row_range(item, r).end + kSplit - 1) / kSplit, rows);
    write_row(item, r, rows.values[r], rows.sum[r]);
  }
}

void attention(const AttentionItem& item) {
  switch (item.kv->type) {
    case KvType::f32:
      return attend<FloatCache<KvType::f32>>(item);
    case KvType::f16:
      return attend<FloatCache<KvType::f16>>(item);
    case KvType::bf16:
      return attend<FloatCache<KvType::bf16>>(item);
    case KvType::int8:
      return attend<Int8Cache>(item);
  }
}
