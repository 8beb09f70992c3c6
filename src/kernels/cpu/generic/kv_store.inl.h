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

// Codes of one position's K or V. Returns scale and zero, both bf16, the scale in the upper half
// and rounded up; it is NaN if any x is not finite.
inline uint32_t round_to_int8(const float* x, int head_dim, int8_t* codes) {
  Vf high = vload(x), low = vsub(vzero(), high);
  Vi largest = vi_zero();
  for (int d = 0; d < head_dim; d += 16) {
    const Vf v = vload(x + d);
    high = vmax(high, v);
    low = vmax(low, vsub(vzero(), v));
    largest = vi_max(largest, vi_and(v_bits(v), vi_set(0x7fffffff)));
  }
  const float most = vreduce_max(high), least = -vreduce_max(low);
  const uint16_t zero_bits = f32_to_bf16(0.5f * most + 0.5f * least);
  const float zero = bf16_to_f32(zero_bits);
  const float reach = (most - zero > zero - least ? most - zero : zero - least) / kMaxQ;
  const bool finite =
      vi_reduce_max(largest) < 0x7f800000 && __builtin_isfinite(zero) && __builtin_isfinite(reach);
  uint32_t scale_bits = f32_to_bf16(reach);
  if (bf16_to_f32(static_cast<uint16_t>(scale_bits)) < reach) ++scale_bits;
  const float up = 1.0f / bf16_to_f32(static_cast<uint16_t>(scale_bits));
  const bool usable = finite && __builtin_isfinite(up);
  for (int d = 0; d < head_dim; d += 16)
    vi_store_i8(codes + d,
                usable ? v_to_int(vmul(vsub(vload(x + d), vset(zero)), vset(up))) : vi_zero());
  return finite ? scale_bits << 16 | zero_bits : 0x7fc00000u;
}

inline void store_int8(const KvLayer& kv, uint8_t* head, int position, const float* k,
                       const float* v) {
  const int head_dim = kv.head_dim, place = position % 16;
  uint8_t* group = head + static_cast<int64_t>(position / 16) * Int8Cache::group_bytes(head_dim);
  int8_t codes[kMaxHeadDim];
  const uint32_t k_scale = round_to_int8(k, head_dim, codes);
  for (int d = 0; d < head_dim; d += 2)
    __builtin_memcpy(group + (d / 2 * 16 + place) * 2, codes + d, 2);
  __builtin_memcpy(group + 16 * head_dim + 4 * place, &k_scale, 4);
  group += kv.v_offset;
  const uint32_t v_scale = round_to_int8(v, head_dim, codes);
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
