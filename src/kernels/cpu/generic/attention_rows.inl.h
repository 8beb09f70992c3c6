// What the kernels of attention share: the rows of an item, the addresses of its blocks, softmax.

// Groups of 16 positions that are scored in one go: two blocks of 32.
constexpr int kStrip = 4;

// Floats from row to row: the 16 more keep rows out of each other's lines of the first cache.
constexpr int kHeadStride = kMaxHeadDim + 16;
constexpr int kPartStride = kSplit + 16;

// A row is one query head of one token. All of this is on the stack, and of it only what the item's
// rows and head size need is touched.
struct Rows {
  int begin[kMaxAttentionRows];  // of the current part, the positions [begin, end) that a row sees
  int end[kMaxAttentionRows];
  // Of each group of 16 positions of the part: its keys, and what to prefetch beside its values.
  const uint8_t* keys[kSplit / 16];
  const uint8_t* ahead[kSplit / 16];
  float weights[kMaxAttentionRows][kPartStride];  // scores, then 2^(score - maximum)
  float maximum[kMaxAttentionRows];               // of the parts so far, and what follows too
  float sum[kMaxAttentionRows];
  float values[kMaxAttentionRows][kHeadStride];
};

struct Range {
  int begin, end;
};

inline int row_count(const AttentionItem& item) { return item.tokens * item.group; }

// Positions of the sequence that row r sees. Both ends grow with r.
inline Range row_range(const AttentionItem& item, int r) {
  const int token = r / item.group;
  const int end =
      (item.shared ? item.shared[token].position : item.first_position + token * item.step) + 1;
  const bool all = item.window == 0 || item.window >= end;
  return {all ? 0 : end - item.window, end};
}

inline const float* row_query(const AttentionItem& item, int r) {
  return item.q + r / item.group * item.q_stride + r % item.group * item.kv->head_dim;
}

// K of a group of 16 positions; its V is kv->v_offset further. group_bytes: of either.
inline const uint8_t* key_group(const AttentionItem& item, int position, int group_bytes) {
  const KvLayer& kv = *item.kv;
  const int block = item.block_table[position / kv.block_size];
  return kv.base + static_cast<size_t>(block) * kv.block_stride +
         static_cast<size_t>(item.kv_head) * kv.head_stride +
         static_cast<size_t>(position % kv.block_size / 16) * static_cast<size_t>(group_bytes);
}

// The first part that attention to the item computes.
inline int first_part(const AttentionItem& item) {
  if (item.part != kAllParts) return item.part;
  const int seen = row_range(item, 0).begin / kSplit;
  return seen > item.parts_done ? seen : item.parts_done;
}

inline int context_end(const AttentionItem& item) {
  return row_range(item, row_count(item) - 1).end;
}

// What the values of a group are read beside, so that memory is never idle, are the keys one part
// further, or those of the next item, or what is there already if there are none. A few lines at a
// time: a burst would fill the queue of misses and hold up the arithmetic behind it.
inline void find_groups(const AttentionItem& item, int start, Range columns, int group_bytes,
                        Rows& rows) {
  const int end = context_end(item);
  const bool to_next = item.next && start + kSplit >= end;
  const AttentionItem& after = to_next ? *item.next : item;
  const int after_start = to_next ? first_part(after) * kSplit : start + kSplit;
  const int after_end = context_end(after);
  for (int j = columns.begin; j < columns.end; j += 16) {
    rows.keys[j / 16] = key_group(item, start + j, group_bytes);
    rows.ahead[j / 16] = after_start + j < after_end
                             ? key_group(after, after_start + j, group_bytes)
                             : rows.keys[j / 16];
  }
}

inline void prefetch(const uint8_t* bytes, int count) {
  for (int i = 0; i < count; i += 64) __builtin_prefetch(bytes + i);
}

// Calls f.template operator()<R>(r) for tiles of rows that cover [r, end): as many as a tile holds,
// then the rest in one tile of their own.
template <int R, class F>
inline void for_tiles(int r, int end, const F& f) {
  for (; r + R <= end; r += R) f.template operator()<R>(r);
  if constexpr (R > 1) for_tiles<R - 1>(r, end, f);
}

// 2^x for x <= 0, 0 below 2^-126; -infinity gives 0 and NaN stays NaN: vmax returns its second
// argument then. Polynomial of Cephes, relative error 4e-9.
inline Vf vexp2(Vf x) {
  x = vmax(vset(-127.0f), x);
  const Vi n = v_to_int(x);
  const Vf r = vsub(x, vi_to_float(n));
  Vf p = vset(1.535336188319500e-4f);
  p = vfma(p, r, vset(1.339887440266574e-3f));
  p = vfma(p, r, vset(9.618437357674640e-3f));
  p = vfma(p, r, vset(5.550332471162809e-2f));
  p = vfma(p, r, vset(2.402264791363012e-1f));
  p = vfma(p, r, vset(6.931472028550421e-1f));
  p = vfma(p, r, vset(1.0f));
  return vmul(p, vi_as_float(vi_shl<23>(vi_add(n, vi_set(127)))));
}

inline float scalar_exp2(float x) { return vfirst(vexp2(vset(x))); }

// Scores [begin, end) become weights; those beside them, in the same groups of 16, become zero.
inline void softmax(float* weights, int begin, int end, float& maximum, float& sum) {
  const int first = begin / 16 * 16, last = (end + 15) / 16 * 16;
  for (int j = first; j < begin; ++j) weights[j] = -__builtin_inff();
  for (int j = end; j < last; ++j) weights[j] = -__builtin_inff();
  Vf most = vload(weights + first);
  for (int j = first + 16; j < last; j += 16) most = vmax(most, vload(weights + j));
  maximum = vreduce_max(most);
  const Vf m = vset(maximum);
  Vf total = vzero();
  for (int j = first; j < last; j += 16) {
    const Vf w = vexp2(vsub(vload(weights + j), m));
    vstore(weights + j, w);
    total = vadd(total, w);
  }
  sum = vreduce_add(total);
}
