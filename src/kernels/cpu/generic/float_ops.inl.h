// The small operations around the matrix products, written once against the vocabulary of vec.h.

// Adds 16 lanes in one fixed order.
inline float horizontal_sum(Vf x) {
  float lanes[16];
  vstore(lanes, x);
  float sum = 0;
  for (float lane : lanes) sum += lane;
  return sum;
}

// e^x within 2 ulp for x in [-87, 88], clamped outside: 2^n * polynomial(r), x = n ln 2 + r (Cephes coefficients).
// NaN stays NaN: the clamps return their second argument when one is NaN.
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
  for (int64_t i = 0; i < n; i += 16) vstore(y + i, vmul(vmul(vload(x + i), scale), vload(weight + i)));
}

void silu_mul(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 16) {
    const Vf g = vload(gate + i);
    const Vf sigmoid_denominator = vadd(vset(1.0f), vexp(vsub(vzero(), g)));
    vstore(y + i, vmul(vdiv(g, sigmoid_denominator), vload(up + i)));
  }
}

void add(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) vstore(x + i, vadd(vload(x + i), vload(y + i)));
}

inline int32_t largest_lane(Vi x) {
  int32_t lanes[16];
  vi_store(lanes, x);
  int32_t largest = 0;
  for (int32_t lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

inline int32_t sum_q(const int8_t* q) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) sum += q[i];
  return sum;
}

void quantize_a8(const float* x, const A8& out, int64_t t) {
  const int64_t blocks = out.cols / kBlock;
  for (int64_t b = 0; b < blocks; ++b, x += kBlock) {
    const Vf lo = vload(x), hi = vload(x + 16);
    // |x| compared as integers: infinity and NaN come out on top and cannot hide.
    const Vi magnitude = vi_set(0x7fffffff);
    const int32_t top = largest_lane(vi_max(vi_and(v_bits(lo), magnitude), vi_and(v_bits(hi), magnitude)));
    const float amax = __builtin_bit_cast(float, top);
    const bool finite = top < 0x7f800000;
    const float inverse = finite && amax > 0 ? 127.0f / amax : 0.0f;
    const Vf scale = vset(__builtin_isfinite(inverse) ? inverse : 0.0f);
    int8_t* q = out.q + t * out.cols + b * kBlock;
    vi_store_i8(q, finite ? v_to_int(vmul(lo, scale)) : vi_zero());
    vi_store_i8(q + 16, finite ? v_to_int(vmul(hi, scale)) : vi_zero());
    const int64_t i = t * blocks + b;
    const float d = finite ? amax / 127.0f : __builtin_nanf("");
    const int32_t first = sum_q(q), second = sum_q(q + 16);
    out.d[i] = d;
    out.s[i] = d * static_cast<float>(first + second);
    out.s_half[2 * i] = d * static_cast<float>(first);
    out.s_half[2 * i + 1] = d * static_cast<float>(second);
    out.sum[2 * i] = first;
    out.sum[2 * i + 1] = second;
  }
}

inline void rotate(float* a, float* b, float c, float s) {
  const float x = *a, y = *b;
  *a = x * c - y * s;
  *b = y * c + x * s;
}

void rope(float* x, int heads, int head_dim, int half, bool interleaved, const float* cosines, const float* sines) {
  for (int h = 0; h < heads; ++h, x += head_dim)
    for (int i = 0; i < half; ++i)
      if (interleaved) rotate(x + 2 * i, x + 2 * i + 1, cosines[i], sines[i]);
      else rotate(x + i, x + half + i, cosines[i], sines[i]);
}
