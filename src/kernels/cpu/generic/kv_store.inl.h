// Rounding K and V of one position and KV head to the cache's type. kv/kv_layout.h says where they
// go.

// 16 values at a time into a float type. bf16 rounds to nearest even, by hand: not every ISA can.
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
inline void store_floats(const KvLayer& kv, uint8_t* head, int position, const float* k,
                         const float* v) {
  constexpr int64_t e = FloatCache<T>::kElement;
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

// Codes of one position's K or V; returns their scale, NaN if any x is not finite.
inline float round_to_int8(const float* x, int head_dim, int8_t* codes) {
  Vi largest = vi_zero();
  for (int d = 0; d < head_dim; d += 16)
    largest = vi_max(largest, vi_and(v_bits(vload(x + d)), vi_set(0x7fffffff)));
  const float most = __builtin_bit_cast(float, vi_reduce_max(largest));
  const bool finite = __builtin_isfinite(most);
  const float up = finite && most > 0 ? kMaxQ / most : 0.0f;
  const bool usable = up > 0 && __builtin_isfinite(up);
  for (int d = 0; d < head_dim; d += 16)
    vi_store_i8(codes + d, usable ? v_to_int(vmul(vload(x + d), vset(up))) : vi_zero());
  return finite ? most / kMaxQ : __builtin_nanf("");
}

inline void store_int8(const KvLayer& kv, uint8_t* head, int position, const float* k,
                       const float* v) {
  const int head_dim = kv.head_dim, place = position % 16;
  uint8_t* group = head + static_cast<int64_t>(position / 16) * Int8Cache::group_bytes(head_dim);
  int8_t codes[kMaxHeadDim];
  const float k_scale = round_to_int8(k, head_dim, codes);
  for (int d = 0; d < head_dim; d += 2)
    __builtin_memcpy(group + (d / 2 * 16 + place) * 2, codes + d, 2);
  __builtin_memcpy(group + 16 * head_dim + 4 * place, &k_scale, 4);
  group += kv.v_offset;
  const float v_scale = round_to_int8(v, head_dim, codes);
  for (int d = 0; d < head_dim; ++d)
    group[(place / 2 * head_dim + d) * 2 + place % 2] = static_cast<uint8_t>(codes[d]);
  __builtin_memcpy(group + 16 * head_dim + 4 * place, &v_scale, 4);
}

void store_kv(const KvLayer& kv, int32_t block, int kv_head, int position, const float* k,
              const float* v) {
  uint8_t* head = kv.base + static_cast<size_t>(block) * kv.block_stride +
                  static_cast<size_t>(kv_head) * kv.head_stride;
  switch (kv.type) {
    case KvType::f32:
      return store_floats<KvType::f32>(kv, head, position, k, v);
    case KvType::f16:
      return store_floats<KvType::f16>(kv, head, position, k, v);
    case KvType::bf16:
      return store_floats<KvType::bf16>(kv, head, position, k, v);
    case KvType::int8:
      return store_int8(kv, head, position, k, v);
  }
}
