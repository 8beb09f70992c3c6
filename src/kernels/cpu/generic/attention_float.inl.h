// Scores and weighted values over a cache of floats: f32, f16 or bf16.
//
// A score is one chain of additions over the dimensions and a value one chain over the positions,
// so neither tiles nor block sizes can change a bit. Several chains run side by side.

template <KvType T>
struct FloatCache {
  static constexpr int kTile = kFloatTile;
  static constexpr int kElement = T == KvType::f32 ? 4 : 2;

  float q[kMaxAttentionRows][kHeadStride];  // times the factor of scores

  static int group_bytes(int head_dim) { return 16 * head_dim * kElement; }

  static Vf load(const uint8_t* p) {
    if constexpr (T == KvType::f32)
      return vload(reinterpret_cast<const float*>(p));
    else if constexpr (T == KvType::f16)
      return vload_f16(p);
    else
      return vload_bf16(p);
  }

  void set_query(int r, const float* x, float factor, int head_dim) {
    for (int d = 0; d < head_dim; d += 16) vstore(q[r] + d, vmul(vload(x + d), vset(factor)));
  }

  // Scores of rows [r, r + R) for G groups of 16 positions, into columns from `column` on.
  template <int R, int G>
  void score(const uint8_t* const* keys, const KvLayer& kv, Rows& rows, int r, int column) const {
    Vf acc[G][R];
    for (int g = 0; g < G; ++g)
      for (int i = 0; i < R; ++i) acc[g][i] = vzero();
    const float* query = q[r];
    for (int d = 0; d < kv.head_dim; ++d) {
      Vf k[G];
      for (int g = 0; g < G; ++g) {
        k[g] = load(keys[g] + d * 16 * kElement);
        __builtin_prefetch(keys[g] + kv.v_offset + d * 16 * kElement);  // its values
      }
      for (int i = 0; i < R; ++i) {
        const Vf x = vset(query[i * kHeadStride + d]);
        for (int g = 0; g < G; ++g) acc[g][i] = vfma(k[g], x, acc[g][i]);
      }
    }
    for (int g = 0; g < G; ++g)
      for (int i = 0; i < R; ++i) vstore(rows.weights[r + i] + column + 16 * g, acc[g][i]);
  }

  // Weights are used as they are.
  void set_weights(const AttentionItem&, Range, Rows&, int) {}

  // Adds positions [begin, end) of the part to the sums. kAll: all rows see them; else positions
  // that a row does not see are never touched by it: they may hold anything.
  template <int R, int V, bool kAll>
  static inline void add(const AttentionItem& item, int begin, int end, const Rows& rows, int r,
                         int d, Vf (&acc)[V][R]) {
    const int head_dim = item.kv->head_dim;
    while (begin < end) {
      const int in_group = begin % 16;
      const int stop = begin + 16 - in_group < end ? begin + 16 - in_group : end;
      const uint8_t* v =
          rows.keys[begin / 16] + item.kv->v_offset + (in_group * head_dim + d) * kElement;
      const uint8_t* ahead = rows.ahead[begin / 16];
      for (int j = begin; j < stop; ++j, v += head_dim * kElement) {
        if (d == 0) prefetch(ahead + j % 16 * head_dim * kElement, head_dim * kElement);
        Vf x[V];
        for (int c = 0; c < V; ++c) x[c] = load(v + 16 * c * kElement);
        for (int i = 0; i < R; ++i) {
          if (!kAll && (j < rows.begin[r + i] || j >= rows.end[r + i])) continue;
          const Vf w = vset(rows.weights[r + i][j]);
          for (int c = 0; c < V; ++c) acc[c][i] = vfma(x[c], w, acc[c][i]);
        }
      }
      begin = stop;
    }
  }

  // Dims [d, d + 16 V) of the weighted values of rows [r, r + R) over the part.
  template <int R, int V>
  void values(const AttentionItem& item, const Rows& rows, int r, int d,
              float (*out)[kHeadStride]) const {
    const int last = r + R - 1;
    const int shared = rows.begin[last] < rows.end[last] ? rows.begin[last] : rows.end[last];
    const int shared_end = shared > rows.end[r] ? shared : rows.end[r];
    Vf acc[V][R];
    for (int c = 0; c < V; ++c)
      for (int i = 0; i < R; ++i) acc[c][i] = vzero();
    add<R, V, false>(item, rows.begin[r], shared, rows, r, d, acc);
    add<R, V, true>(item, shared, shared_end, rows, r, d, acc);
    add<R, V, false>(item, shared_end, rows.end[last], rows, r, d, acc);
    for (int c = 0; c < V; ++c)
      for (int i = 0; i < R; ++i) vstore(out[i] + d + 16 * c, acc[c][i]);
  }
};
