// The small operations around the matrix products, written once against the vocabulary of vec.h.

// Adds 16 lanes in one fixed order.
inline float horizontal_sum(Vf x) {
  float lanes[16];
  vstore(lanes, x);
  float sum = 0;
  for (float lane : lanes) sum += lane;
  return sum;
}

// e^x for x in [-87, 88], clamped outside: 2^n * polynomial(r), x = n ln 2 + r (Cephes
// coefficients). NaN stays NaN: the clamps return their second argument when one is NaN.
inline Vf vexp(Vf x) {
  x = vmin(vset(88.3762626647949f), vmax(vset(-87.3365447504f), x));
  const Vi n = v_to_int(vmul(x, vset(1.44269504088896341f)));
  const Vf nf = vi_to_float(n);
  Vf r = vfma(nf, vset(-0.693359375f), x);
  r = vfma(nf, vset(2.12194440e-4f), r);
  Vf p = vset(1.9875691500e-4f);
  p = vfma(p, r, vset(1.3981999507e-3f));
  p = vfma(p, r, vset(8.3334519073e-3f));
  p = vfma(p, r, vset(4.1665795894e-2f));
  p = vfma(p, r, vset(1.6666665459e-1f));
  p = vfma(p, r, vset(5.0000001201e-1f));
  p = vadd(vfma(p, vmul(r, r), r), vset(1.0f));
  return vmul(p, vi_as_float(vi_shl<23>(vi_add(n, vi_set(127)))));
}

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* y) {
  Vf squares = vzero();
  for (int64_t i = 0; i < n; i += 16) {
    const Vf v = vload(x + i);
    squares = vfma(v, v, squares);
  }
  const float mean = horizontal_sum(squares) / static_cast<float>(n);
  const Vf scale = vset(1.0f / __builtin_sqrtf(mean + eps));
  for (int64_t i = 0; i < n; i += 16)
    vstore(y + i, vmul(vmul(vload(x + i), scale), vload(weight + i)));
}

void silu_mul(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 16) {
    const Vf g = vload(gate + i);
    const Vf sigmoid_denominator = vadd(vset(1.0f), vexp(vsub(vzero(), g)));
    vstore(y + i, vmul(vdiv(g, sigmoid_denominator), vload(up + i)));
  }
}

// (1 + tanh u) / 2 = 1 / (1 + e^(-2u)), u = sqrt(2 / pi) * (x + 0.044715 x^3).
void gelu_mul(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 16) {
    const Vf x = vload(gate + i);
    const Vf cubic = vfma(vmul(x, x), vset(0.044715f), vset(1.0f));
    const Vf exponent = vmul(vmul(x, cubic), vset(-1.5957691216057308f));
    vstore(y + i, vmul(vdiv(x, vadd(vset(1.0f), vexp(exponent))), vload(up + i)));
  }
}

// The mean is taken away first, so that a large one costs no precision.
void layer_norm(const float* x, const float* weight, const float* bias, float eps, int64_t n,
                float* y) {
  Vf sums = vzero();
  for (int64_t i = 0; i < n; i += 16) sums = vadd(sums, vload(x + i));
  const Vf mean = vset(horizontal_sum(sums) / static_cast<float>(n));
  Vf squares = vzero();
  for (int64_t i = 0; i < n; i += 16) {
    const Vf v = vsub(vload(x + i), mean);
    squares = vfma(v, v, squares);
  }
  const float variance = horizontal_sum(squares) / static_cast<float>(n);
  const Vf scale = vset(1.0f / __builtin_sqrtf(variance + eps));
  for (int64_t i = 0; i < n; i += 16)
    vstore(y + i, vfma(vmul(vsub(vload(x + i), mean), scale), vload(weight + i), vload(bias + i)));
}

// erfc(u) = t P(t) e^(-u^2) for u >= 0, t = 1 / (1 + 0.3275911 u), within 1.5e-7 (Abramowitz and
// Stegun 7.1.26). With u = |x| / sqrt 2 and half of it, gelu(x) is x - x half for positive x, x
// half for negative ones.
void gelu_erf(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 16) {
    const Vf v = vload(x + i), negated = vsub(vzero(), v);
    const Vf magnitude = vmax(negated, v);
    const Vf t = vdiv(vset(1.0f), vfma(magnitude, vset(0.23164189f), vset(1.0f)));
    Vf p = vset(0.5307027145f);
    p = vfma(p, t, vset(-0.726576013f));
    p = vfma(p, t, vset(0.7107068705f));
    p = vfma(p, t, vset(-0.142248368f));
    p = vfma(p, t, vset(0.127414796f));
    const Vf half = vmul(vmul(p, t), vexp(vmul(vmul(v, v), vset(-0.5f))));
    // max(x, 0) - |x| half; NaN stays NaN by the product.
    vstore(y + i, vsub(vmax(vzero(), v), vmul(magnitude, half)));
  }
}

void add(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) vstore(x + i, vadd(vload(x + i), vload(y + i)));
}

void add_scaled(float* x, const float* y, float scale, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) vstore(x + i, vfma(vload(y + i), vset(scale), vload(x + i)));
}

// tanh u = 1 - 2 / (1 + e^(2u)). x - x is NaN if x is not finite, else 0.
void softcap(float* x, float cap, int64_t n) {
  const Vf twice = vset(2.0f / cap), one = vset(1.0f), minus = vset(-2.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const Vf v = vload(x + i);
    const Vf tanh = vadd(one, vdiv(minus, vadd(one, vexp(vmul(v, twice)))));
    vstore(x + i, vadd(vmul(vset(cap), tanh), vsub(v, v)));
  }
}

// Largest |x| of a block. Compared as integers: infinity and NaN come out on top and cannot hide.
inline float largest_magnitude(const float* x) {
  const Vi magnitude = vi_set(0x7fffffff);
  const Vi lo = vi_and(v_bits(vload(x)), magnitude), hi = vi_and(v_bits(vload(x + 16)), magnitude);
  return __builtin_bit_cast(float, vi_reduce_max(vi_max(lo, hi)));
}

struct HalfSums {
  int32_t q, q_low;
};

// Rounds 16 values to x * scale = q, or = 128 * q + q_low; the sums are exact, so any order will
// do.
inline HalfSums round_half_block(Vf x, Vf scale, bool wide, int8_t* q, int8_t* q_low) {
  Vi high = v_to_int(vmul(x, scale));
  Vi low = vi_zero();
  if (wide) {
    const Vi rounded = high;
    high = vi_sar<7>(vi_add(rounded, vi_set(64)));
    low = vi_sub(rounded, vi_shl<7>(high));
  }
  vi_store_i8(q, high);
  vi_store_i8(q_low, low);
  return {vi_reduce_add(high), wide ? vi_reduce_add(low) : 0};
}

inline int64_t a8_index(const A8& x, int64_t t, int64_t b) {
  return (t / kA8Tokens * (x.cols / kBlock) + b) * kA8Tokens + t % kA8Tokens;
}

inline void quantize_block(const float* x, float amax, bool wide, const A8& out, int64_t t,
                           int64_t b) {
  const int64_t i = a8_index(out, t, b), at = i * kBlock;
  const bool finite = __builtin_isfinite(amax);
  const float inverse = finite && amax > 0 ? (wide ? 128.0f * kMaxQ : 1.0f * kMaxQ) / amax : 0.0f;
  const Vf scale = vset(__builtin_isfinite(inverse) ? inverse : 0.0f);
  const Vf lo = finite ? vload(x) : vzero(), hi = finite ? vload(x + 16) : vzero();
  const HalfSums first = round_half_block(lo, scale, wide, out.q + at, out.q_low + at);
  const HalfSums second = round_half_block(hi, scale, wide, out.q + at + 16, out.q_low + at + 16);
  const float d = finite ? amax / kMaxQ : __builtin_nanf("");
  const float half[2] = {d * (1.0f / 128) * static_cast<float>(128 * first.q + first.q_low),
                         d * (1.0f / 128) * static_cast<float>(128 * second.q + second.q_low)};
  const int32_t sums[4] = {first.q + second.q, first.q, first.q_low + second.q_low, first.q_low};
  out.wide[i] = wide;
  out.d[i] = d;
  out.s[i] = d * (1.0f / 128) * static_cast<float>(128 * sums[0] + sums[2]);
  __builtin_memcpy(out.s_half + 2 * i, half, sizeof(half));
  __builtin_memcpy(out.sum + 4 * i, sums, sizeof(sums));
}

void quantize_a8(const float* x, const A8& out, int64_t t) {
  const int64_t blocks = out.cols / kBlock;
  float squares = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    const float amax = largest_magnitude(x + b * kBlock);
    out.d[a8_index(out, t, b)] = amax;  // until the block's scale takes its place
    squares += amax * amax;
  }
  const float limit = squares * (kWideThreshold / static_cast<float>(blocks));
  for (int64_t b = 0; b < blocks; ++b) {
    const float amax = out.d[a8_index(out, t, b)];
    quantize_block(x + b * kBlock, amax, amax * amax > limit, out, t, b);
  }
}

inline void rotate(float* a, float* b, float c, float s) {
  const float x = *a, y = *b;
  *a = x * c - y * s;
  *b = y * c + x * s;
}

void rope(float* x, int heads, int head_dim, int half, bool interleaved, const float* cosines,
          const float* sines) {
  for (int h = 0; h < heads; ++h, x += head_dim)
    for (int i = 0; i < half; ++i)
      if (interleaved)
        rotate(x + 2 * i, x + 2 * i + 1, cosines[i], sines[i]);
      else
        rotate(x + i, x + half + i, cosines[i], sines[i]);
}
