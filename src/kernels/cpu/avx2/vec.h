// The vocabulary of cpu/generic/ on AVX2 + FMA + F16C: 16 floats, 16 integers and a 64-byte line,
// as two halves each. Included once, inside an unnamed namespace.

struct Vf {
  __m256 a, b;
};
struct Vi {
  __m256i a, b;
};
struct Line {
  __m256i a, b;
};

constexpr int kGemmPanels = 1;  // panels that share one broadcast of an activation
constexpr int kGemmSums = 4;    // panels x tokens of a tile: 2 halves each of 16 registers
constexpr int kTokenTile =
    4;  // 4 tokens x 2 halves of 16-bit sums leave 8 of 16 registers for lines and floats
constexpr int kFloatTile = 4, kInt8Tile = 4;  // query rows that share one load of K or V
// Loads of K or V that share one broadcast of a row's q or weight: with the rows, at most 8 of 16
// registers hold sums.
constexpr int attention_loads(int rows) { return rows > 2 ? 1 : 2; }

inline Vf vzero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Vf vset(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Vf vload(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void vstore(float* p, Vf x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
inline __m128i load16(const void* p, int i) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p) + i);
}
inline Vf vload_f16(const void* p) {
  return {_mm256_cvtph_ps(load16(p, 0)), _mm256_cvtph_ps(load16(p, 1))};
}
inline __m256 bf16_half(__m128i x) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}
inline Vf vload_bf16(const void* p) { return {bf16_half(load16(p, 0)), bf16_half(load16(p, 1))}; }
inline void vstore_f16(uint16_t* p, Vf x) {
  constexpr int kRound = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, kRound));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, kRound));
}
inline Vf vload_i8(const uint8_t* p) {
  const __m128i x = load16(p, 0);
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)))};
}
inline Vf vadd(Vf x, Vf y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline Vf vsub(Vf x, Vf y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline Vf vmul(Vf x, Vf y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline Vf vdiv(Vf x, Vf y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline Vf vfma(Vf x, Vf y, Vf z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline Vf vmax(Vf x, Vf y) {
  return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}  // y if either is NaN
inline Vf vmin(Vf x, Vf y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }

inline __m128 lower_half(__m256 x) { return _mm256_castps256_ps128(x); }
inline float vfirst(Vf x) { return _mm256_cvtss_f32(x.a); }
inline float vreduce_max(Vf x) {
  const __m256 eight = _mm256_max_ps(x.a, x.b);
  __m128 m = _mm_max_ps(lower_half(eight), _mm256_extractf128_ps(eight, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}
inline float vreduce_add(Vf x) {  // always in the same order
  const __m256 eight = _mm256_add_ps(x.a, x.b);
  __m128 m = _mm_add_ps(lower_half(eight), _mm256_extractf128_ps(eight, 1));
  m = _mm_add_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_add_ss(m, _mm_movehdup_ps(m)));
}

inline Vi vi_load_u8(const uint8_t* p) {
  const __m128i x = load16(p, 0);
  return {_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128(x, 8))};
}
inline Vi vi_zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
inline Vi vi_set(int x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline Vi vi_and(Vi x, Vi y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
inline Vi vi_max(Vi x, Vi y) { return {_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)}; }
inline Vi vi_add(Vi x, Vi y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
inline Vi vi_sub(Vi x, Vi y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
template <int kBits>
inline Vi vi_shl(Vi x) {
  return {_mm256_slli_epi32(x.a, kBits), _mm256_slli_epi32(x.b, kBits)};
}
template <int kBits>
inline Vi vi_shr(Vi x) {
  return {_mm256_srli_epi32(x.a, kBits), _mm256_srli_epi32(x.b, kBits)};
}
template <int kBits>
inline Vi vi_sar(Vi x) {
  return {_mm256_srai_epi32(x.a, kBits), _mm256_srai_epi32(x.b, kBits)};
}
inline Vf vi_to_float(Vi x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline Vf vload_u8(const uint8_t* p) { return vi_to_float(vi_load_u8(p)); }
inline Vi v_to_int(Vf x) {
  return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)};
}  // nearest, ties to even
inline Vi v_bits(Vf x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
inline Vf vi_as_float(Vi x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
// Folds 16 integers to one; the operation is exact, so the order does not matter.
template <class Op>
inline int32_t vi_fold(Vi x, Op op) {
  const __m256i eight = op(x.a, x.b);
  const __m256i four = op(eight, _mm256_permute2x128_si256(eight, eight, 1));
  const __m256i two = op(four, _mm256_shuffle_epi32(four, 0x4e));
  return _mm256_extract_epi32(op(two, _mm256_shuffle_epi32(two, 0xb1)), 0);
}
inline int32_t vi_reduce_max(Vi x) {
  return vi_fold(x, [](__m256i a, __m256i b) { return _mm256_max_epi32(a, b); });
}
inline int32_t vi_reduce_add(Vi x) {
  return vi_fold(x, [](__m256i a, __m256i b) { return _mm256_add_epi32(a, b); });
}
inline void vi_store_i8(int8_t* p, Vi x) {
  // Packing works within 128-bit lanes: the permutation puts the four groups of four back in order.
  const __m256i words = _mm256_packs_epi32(x.a, x.b);
  const __m256i bytes = _mm256_packs_epi16(words, words);
  const __m256i ordered =
      _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(ordered));
}

inline void vi_store_i16(int16_t* p, Vi x) {
  const __m256i words = _mm256_packs_epi32(x.a, x.b);  // within 128-bit lanes
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(words, 0xd8));
}

inline Line line_load(const uint8_t* p) {
  const auto* from = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
}
inline void line_store(uint8_t* p, Line x) {
  auto* to = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(to, x.a);
  _mm256_storeu_si256(to + 1, x.b);
}
inline Line line_and(Line x, int byte) {
  const __m256i mask = _mm256_set1_epi8(static_cast<char>(byte));
  return {_mm256_and_si256(x.a, mask), _mm256_and_si256(x.b, mask)};
}
inline Line line_or(Line x, Line y) {
  return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
// Bits move within 16-bit words; the caller masks what crosses a byte.
template <int kBits>
inline Line line_shift(Line x) {
  if constexpr (kBits > 0)
    return {_mm256_slli_epi16(x.a, kBits), _mm256_slli_epi16(x.b, kBits)};
  else if constexpr (kBits < 0)
    return {_mm256_srli_epi16(x.a, -kBits), _mm256_srli_epi16(x.b, -kBits)};
  else
    return x;
}
inline Vi line_words(Line x) { return {x.a, x.b}; }

// A line of 32 words, 16 bits each: widened bytes; a pair for all lanes; sums of products of pairs.
inline Line words_from_i8(const uint8_t* p) {
  return {_mm256_cvtepi8_epi16(load16(p, 0)), _mm256_cvtepi8_epi16(load16(p, 1))};
}
inline Line words_set_pair(const int16_t* p) {
  int32_t pair;
  __builtin_memcpy(&pair, p, 4);
  return {_mm256_set1_epi32(pair), _mm256_set1_epi32(pair)};
}
inline Vi add_word_products(Vi sum, Line x, Line y) {
  return {_mm256_add_epi32(sum.a, _mm256_madd_epi16(x.a, y.a)),
          _mm256_add_epi32(sum.b, _mm256_madd_epi16(x.b, y.b))};
}

// How many pair sums of |q| <= 127 fit 16 bits: 2 * (2^bits - 1) * 127 each, below 32768 together.
constexpr int sums_before_widening(int code_bits) {
  return code_bits <= 4 ? 8 : code_bits == 5 ? 4 : code_bits == 6 ? 2 : 1;
}

// Codes as Dot takes them, and how much above what they stand for. kCodeBits: bits of an unsigned
// code, or 8 for signed codes.
template <int kCodeBits>
constexpr int kBias = 0;
template <int kCodeBits>
inline Line multiplicand(Line codes) {
  return codes;
}

// Sums of 4 products per row, exact. Pairs are summed in 16 bits and widened to 32 just before they
// could overflow. kLines: of a block, or of the half that has a scale of its own.
template <int kCodeBits, int kLines>
struct Dot {
  static constexpr int kSums =
      sums_before_widening(kCodeBits) < kLines ? sums_before_widening(kCodeBits) : kLines;
  __m256i a16, b16;  // set by the first line after a widening
  __m256i a32 = _mm256_setzero_si256(), b32 = _mm256_setzero_si256();

  [[gnu::always_inline]] static inline __m256i pairs(__m256i codes, __m256i q) {
    if constexpr (kCodeBits == 8)  // |w| * (q with w's sign): the multiply wants one unsigned side
      return _mm256_maddubs_epi16(_mm256_abs_epi8(codes), _mm256_sign_epi8(q, codes));
    else
      return _mm256_maddubs_epi16(codes, q);
  }
  // Keeps the compiler from adding in another order, which costs it more registers than there are.
  [[gnu::always_inline]] static inline void pin(__m256i& x) { asm("" : "+x"(x)); }

  template <int kLine>
  [[gnu::always_inline]] inline void add(Line codes, const int8_t* q) {
    int32_t four;
    __builtin_memcpy(&four, q, 4);
    const __m256i broadcast = _mm256_set1_epi32(four);
    if constexpr (kLine % kSums == 0) {
      a16 = pairs(codes.a, broadcast);
      b16 = pairs(codes.b, broadcast);
    } else {
      a16 = _mm256_add_epi16(a16, pairs(codes.a, broadcast));
      b16 = _mm256_add_epi16(b16, pairs(codes.b, broadcast));
    }
    pin(a16);
    pin(b16);
    if constexpr ((kLine + 1) % kSums == 0) widen();
  }
  [[gnu::always_inline]] inline void widen() {
    const __m256i ones = _mm256_set1_epi16(1);
    a32 = _mm256_add_epi32(a32, _mm256_madd_epi16(a16, ones));
    b32 = _mm256_add_epi32(b32, _mm256_madd_epi16(b16, ones));
    if constexpr (kSums < kLines) {
      pin(a32);
      pin(b32);
    }
  }
  inline Vi sum_of_products() const { return {a32, b32}; }
};

// For probe.inl.h: sums that are added to in turn, enough to hide the latency of an addition and
// few enough for the registers.
constexpr int kProbeInt8Sums = 4, kProbeF32Sums = 6;
inline __m256i probe_half(__m256i sum, __m256i codes, __m256i q) {
  const __m256i pairs = _mm256_maddubs_epi16(codes, q);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline Vi probe_dot(Vi sum, Vi codes, Vi q) {
  return {probe_half(sum.a, codes.a, q.a), probe_half(sum.b, codes.b, q.b)};
}
// The same value, of which the compiler knows nothing any more.
inline void forget(Vi& x) { asm volatile("" : "+x"(x.a), "+x"(x.b)); }
inline void forget(Vf& x) { asm volatile("" : "+x"(x.a), "+x"(x.b)); }
