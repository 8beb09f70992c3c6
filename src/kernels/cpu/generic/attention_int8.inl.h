// Scores and weighted values over an int8 cache. Queries and weights are rounded to 16 bits, each
// row with one scale, so that all products and sums are exact integers: |code| <= 127, |16 bits| <=
// 32767, and 256 products, of dimensions or of the positions of a part, stay below 2^31. Zero
// weights take the place of positions that a row does not see.

struct Int8Cache {
  static constexpr int kTile = kInt8Tile;
  int16_t q[kMaxAttentionRows][kHeadStride];
  float q_scale[kMaxAttentionRows];
  float q_sum[kMaxAttentionRows];                   // of q, times q_scale
  int16_t weights[kMaxAttentionRows][kPartStride];  // times the scales of V
  float weight_scale[kMaxAttentionRows];
  float zero_sum[kMaxAttentionRows];  // of weights times the zeros of V

  static int group_bytes(int head_dim) { return 16 * (head_dim + 4); }

  // Scales and zeros of a group's 16 positions, as bf16 in the upper and lower halves.
  static const uint8_t* scales(const uint8_t* group, int head_dim) { return group + 16 * head_dim; }
  static Vf scale_of(Vi both) { return vi_as_float(vi_shl<16>(vi_shr<16>(both))); }
  static Vf zero_of(Vi both) { return vi_as_float(vi_shl<16>(both)); }

  // What multiplies the largest |x| to 32767, and the factor back. x: compared as integers, so that
  // NaN comes out on top and makes the factor NaN.
  static float to_16_bits(Vi largest, float& back) {
    const float most = __builtin_bit_cast(float, vi_reduce_max(largest));
    const float up = 32767.0f / most;
    const bool usable = most > 0 && __builtin_isfinite(most) && __builtin_isfinite(up);
    back = most * (1.0f / 32767.0f) * (__builtin_isfinite(most) ? 1.0f : __builtin_nanf(""));
    return usable ? up : 0.0f;
  }

  static Vi magnitude(Vf x) { return vi_and(v_bits(x), vi_set(0x7fffffff)); }

  static void round_16(int16_t* out, Vf x, float up) {
    vi_store_i16(out, up > 0 ? v_to_int(vmul(x, vset(up))) : vi_zero());
  }

  void set_query(int r, const float* x, float factor, int head_dim) {
    Vi largest = vi_zero();
    for (int d = 0; d < head_dim; d += 16) largest = vi_max(largest, magnitude(vload(x + d)));
    const float up = to_16_bits(largest, q_scale[r]);
    for (int d = 0; d < head_dim; d += 16) round_16(q[r] + d, vload(x + d), up);
    q_scale[r] *= factor;
    int32_t sum = 0;
    for (int d = 0; d < head_dim; ++d) sum += q[r][d];
    q_sum[r] = static_cast<float>(sum) * q_scale[r];
  }

  template <int R, int G>
  void score(const uint8_t* const* keys, const KvLayer& kv, Rows& rows, int r, int column) const {
    const int head_dim = kv.head_dim;
    Vi acc[G][R];
    for (int g = 0; g < G; ++g)
      for (int i = 0; i < R; ++i) acc[g][i] = vi_zero();
    const int16_t* query = q[r];
    for (int d = 0; d < head_dim; d += 2) {
      Line k[G];
      for (int g = 0; g < G; ++g) {
        k[g] = words_from_i8(keys[g] + d * 16);
        __builtin_prefetch(keys[g] + kv.v_offset + d * 16);  // its values
      }
      for (int i = 0; i < R; ++i) {
        const Line x = words_set_pair(query + i * kHeadStride + d);
        for (int g = 0; g < G; ++g) acc[g][i] = add_word_products(acc[g][i], k[g], x);
      }
    }
    for (int g = 0; g < G; ++g) {
      const Vi both = line_words(line_load(scales(keys[g], head_dim)));
      const Vf scale = scale_of(both), zero = zero_of(both);
      for (int i = 0; i < R; ++i) {
        const Vf products = vmul(vi_to_float(acc[g][i]), vmul(scale, vset(q_scale[r + i])));
        vstore(rows.weights[r + i] + column + 16 * g, vfma(zero, vset(q_sum[r + i]), products));
      }
    }
  }

  // Weights times the scales of V, rounded; zero for the rest of `columns`.
  void set_weights(const AttentionItem& item, Range columns, Rows& rows, int r) {
    const int head_dim = item.kv->head_dim;
    const int first = rows.begin[r] / 16 * 16, last = (rows.end[r] + 15) / 16 * 16;
    Vi largest = vi_zero();
    Vf zeros = vzero();
    for (int j = first; j < last; j += 16) {
      const uint8_t* group = rows.keys[j / 16] + item.kv->v_offset;
      const bool whole = j >= rows.begin[r] && j + 16 <= rows.end[r];
      uint8_t seen[64] = {};  // positions that nobody wrote may be anything
      for (int i = 0; !whole && i < 16; ++i)
        if (j + i >= rows.begin[r] && j + i < rows.end[r])
          __builtin_memcpy(seen + 4 * i, scales(group, head_dim) + 4 * i, 4);
      const Vi both = line_words(line_load(whole ? scales(group, head_dim) : seen));
      zeros = vfma(vload(rows.weights[r] + j), zero_of(both), zeros);
      const Vf w = vmul(vload(rows.weights[r] + j), scale_of(both));
      vstore(rows.weights[r] + j, w);
      largest = vi_max(largest, magnitude(w));
    }
    zero_sum[r] = vreduce_add(zeros);
    const float up = to_16_bits(largest, weight_scale[r]);
    for (int j = columns.begin; j < first; j += 16) vi_store_i16(weights[r] + j, vi_zero());
    for (int j = first; j < last; j += 16) round_16(weights[r] + j, vload(rows.weights[r] + j), up);
    for (int j = last; j < columns.end; j += 16) vi_store_i16(weights[r] + j, vi_zero());
  }

  template <int R, int V>
  void values(const AttentionItem& item, const Rows& rows, int r, int d,
              float (*out)[kHeadStride]) const {
    const int head_dim = item.kv->head_dim;
    Vi acc[V][R];
    for (int c = 0; c < V; ++c)
      for (int i = 0; i < R; ++i) acc[c][i] = vi_zero();
    for (int j = rows.begin[r] / 16 * 16; j < rows.end[r + R - 1]; j += 16) {
      const uint8_t* v = rows.keys[j / 16] + item.kv->v_offset + 2 * d;
      const uint8_t* ahead = rows.ahead[j / 16];
      for (int pair = 0; pair < 16; pair += 2, v += 2 * head_dim) {
        if (d == 0) prefetch(ahead + pair * head_dim, 2 * head_dim);
        Line x[V];
        for (int c = 0; c < V; ++c) x[c] = words_from_i8(v + 32 * c);
        for (int i = 0; i < R; ++i) {
          const Line w = words_set_pair(weights[r + i] + j + pair);
          for (int c = 0; c < V; ++c) acc[c][i] = add_word_products(acc[c][i], x[c], w);
        }
      }
    }
    for (int c = 0; c < V; ++c)
      for (int i = 0; i < R; ++i)
        vstore(out[i] + d + 16 * c,
               vfma(vi_to_float(acc[c][i]), vset(weight_scale[r + i]), vset(zero_sum[r + i])));
  }
};
