// The vocabulary of cpu/generic/ on AVX-512 (F, BW, VL, DQ, VNNI): 16 floats, 16 integers, a
// 64-byte line. Included once, inside an unnamed namespace.

struct Vf {
  __m512 v;
};
struct Vi {
  __m512i v;
};
struct Line {
  __m512i v;
};

constexpr int kGemmPanels = 2;  // panels that share one broadcast of an activation
constexpr int kGemmSums = 8;    // panels x tokens of a tile: 8 + 8 sums of 32 registers
constexpr int kTokenTile =
    8;  // tokens that share one unpacked line: 8 + 8 accumulators of 32 registers
// Query rows that share one load of K or V, of floats and of codes: both kinds have to be widened,
// and codes take a register more for it.
constexpr int kFloatTile = 12, kInt8Tile = 8;
// Loads of K or V that share one broadcast of a row's q or weight: with the rows up to 24 sums of
// 32 registers, and at least the 8 that hide the latency of a multiply-add.
constexpr int attention_loads(int rows) { return rows > 4 ? 2 : 4; }

inline Vf vzero() { return {_mm512_setzero_ps()}; }
inline Vf vset(float x) { return {_mm512_set1_ps(x)}; }
inline Vf vload(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void vstore(float* p, Vf a) { _mm512_storeu_ps(p, a.v); }
inline Vf vload_f16(const void* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)))};
}
inline Vf vload_bf16(const void* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline void vstore_f16(uint16_t* p, Vf a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Vf vload_i8(const uint8_t* p) {
  return {_mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
inline Vf vadd(Vf a, Vf b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vf vsub(Vf a, Vf b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vf vmul(Vf a, Vf b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vf vdiv(Vf a, Vf b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vf vfma(Vf a, Vf b, Vf c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Vf vmax(Vf a, Vf b) { return {_mm512_max_ps(a.v, b.v)}; }  // b if either is NaN
inline Vf vmin(Vf a, Vf b) { return {_mm512_min_ps(a.v, b.v)}; }

inline float vreduce_max(Vf a) { return _mm512_reduce_max_ps(a.v); }
inline float vreduce_add(Vf a) { return _mm512_reduce_add_ps(a.v); }  // always in the same order
inline float vfirst(Vf a) { return _mm512_cvtss_f32(a.v); }

inline Vi vi_load_u8(const uint8_t* p) {
  return {_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline Vi vi_zero() { return {_mm512_setzero_si512()}; }
inline Vi vi_set(int x) { return {_mm512_set1_epi32(x)}; }
inline Vi vi_and(Vi a, Vi b) { return {_mm512_and_si512(a.v, b.v)}; }
inline Vi vi_max(Vi a, Vi b) { return {_mm512_max_epi32(a.v, b.v)}; }
inline Vi vi_add(Vi a, Vi b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline Vi vi_sub(Vi a, Vi b) { return {_mm512_sub_epi32(a.v, b.v)}; }
template <int kBits>
inline Vi vi_shl(Vi a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
template <int kBits>
inline Vi vi_shr(Vi a) {
  return {_mm512_srli_epi32(a.v, kBits)};
}
template <int kBits>
inline Vi vi_sar(Vi a) {
  return {_mm512_srai_epi32(a.v, kBits)};
}
inline Vf vi_to_float(Vi a) { return {_mm512_cvtepi32_ps(a.v)}; }
inline Vi v_to_int(Vf a) { return {_mm512_cvtps_epi32(a.v)}; }  // nearest, ties to even
inline Vi v_bits(Vf a) { return {_mm512_castps_si512(a.v)}; }
inline Vf vi_as_float(Vi a) { return {_mm512_castsi512_ps(a.v)}; }
inline Vf vload_u8(const uint8_t* p) { return vi_to_float(vi_load_u8(p)); }
inline int32_t vi_reduce_max(Vi a) { return _mm512_reduce_max_epi32(a.v); }
inline int32_t vi_reduce_add(Vi a) { return _mm512_reduce_add_epi32(a.v); }
inline void vi_store_i8(int8_t* p, Vi a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}

inline void vi_store_i16(int16_t* p, Vi a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(a.v));
}

inline Line line_load(const uint8_t* p) { return {_mm512_loadu_si512(p)}; }
inline void line_store(uint8_t* p, Line a) { _mm512_storeu_si512(p, a.v); }
inline Line line_and(Line a, int byte) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi8(static_cast<char>(byte)))};
}
inline Line line_or(Line a, Line b) { return {_mm512_or_si512(a.v, b.v)}; }
// Bits move within 16-bit words; the caller masks what crosses a byte.
template <int kBits>
inline Line line_shift(Line a) {
  if constexpr (kBits > 0)
    return {_mm512_slli_epi16(a.v, kBits)};
  else if constexpr (kBits < 0)
    return {_mm512_srli_epi16(a.v, -kBits)};
  else
    return a;
}
inline Vi line_words(Line a) { return {a.v}; }

// A line of 32 words, 16 bits each: widened bytes; a pair for all lanes; sums of products of pairs.
inline Line words_from_i8(const uint8_t* p) {
  return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline Line words_set_pair(const int16_t* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, 4);
  return {_mm512_set1_epi32(pair)};
}
// By hand: around the intrinsic g++ 12 copies every sum, there and back.
inline Vi add_word_products(Vi sum, Line a, Line b) {
  asm("vpdpwssd %2, %1, %0" : "+v"(sum.v) : "v"(a.v), "v"(b.v));
  return sum;
}

// Codes as Dot takes them, and how much above what they stand for. kCodeBits: bits of an unsigned
// code, or 8 for signed codes, which the multiplication wants unsigned.
template <int kCodeBits>
constexpr int kBias = kCodeBits == 8 ? 128 : 0;
template <int kCodeBits>
inline Line multiplicand(Line codes) {
  if constexpr (kCodeBits == 8)
    return {_mm512_xor_si512(codes.v, _mm512_set1_epi8(-128))};
  else
    return codes;
}

// Sums of 4 products per row, exact. kLines: of a block, or of the half that has a scale of its
// own.
template <int kCodeBits, int kLines>
struct Dot {
  __m512i sum = _mm512_setzero_si512();
  template <int kLine>
  [[gnu::always_inline]] inline void add(Line codes, const int8_t* q) {
    int32_t four;
    __builtin_memcpy(&four, q, 4);
    sum = _mm512_dpbusd_epi32(sum, codes.v, _mm512_set1_epi32(four));
  }
  inline Vi sum_of_products() const { return {sum}; }
};

// For probe.inl.h: sums that are added to in turn, enough to hide the latency of an addition.
constexpr int kProbeInt8Sums = 12, kProbeF32Sums = 12;
inline Vi probe_dot(Vi sum, Vi codes, Vi q) { return {_mm512_dpbusd_epi32(sum.v, codes.v, q.v)}; }
// The same value, of which the compiler knows nothing any more.
inline void forget(Vi& x) { asm volatile("" : "+v"(x.v)); }
inline void forget(Vf& x) { asm volatile("" : "+v"(x.v)); }
