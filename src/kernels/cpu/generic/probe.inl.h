// What this machine can do at most, in the instructions that the kernels use: reading, 8-bit and
// float multiply-adds. forget() keeps the compiler from computing equal things once.

uint64_t probe_read(const uint8_t* bytes, size_t n) {
  constexpr int kSums = 8;
  constexpr size_t kAhead = 1024;  // bytes; a prefetch past the end does no harm
  Line sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = line_load(bytes + 64 * i);
  for (size_t at = 0; at < n; at += 64 * kSums)
    for (int i = 0; i < kSums; ++i) {
      __builtin_prefetch(bytes + at + 64 * i + kAhead);
      sums[i] = line_or(sums[i], line_load(bytes + at + 64 * i));
    }
  for (int i = 1; i < kSums; ++i) sums[0] = line_or(sums[0], sums[i]);
  return static_cast<uint64_t>(vi_reduce_add(line_words(sums[0])));
}

int32_t probe_int8(int64_t rounds) {
  constexpr int kSums = kProbeInt8Sums;
  static_assert(kProbeRound % kSums == 0);
  const Vi q = vi_set(0x01010101);
  Vi codes = q;
  Vi sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = vi_zero();
  for (int64_t step = 0; step < rounds * (kProbeRound / kSums); ++step)
    for (int i = 0; i < kSums; ++i) {
      forget(codes);
      sums[i] = probe_dot(sums[i], codes, q);
    }
  for (int i = 1; i < kSums; ++i) sums[0] = vi_add(sums[0], sums[i]);
  return vi_reduce_add(sums[0]);
}

float probe_f32(int64_t rounds) {
  constexpr int kSums = kProbeF32Sums;
  static_assert(kProbeRound % kSums == 0);
  const Vf half = vset(0.5f);
  Vf sums[kSums];
  for (int i = 0; i < kSums; ++i) {
    sums[i] = vzero();
    forget(sums[i]);
  }
  for (int64_t step = 0; step < rounds * (kProbeRound / kSums); ++step)
    for (int i = 0; i < kSums; ++i) sums[i] = vfma(sums[i], half, half);
  for (int i = 1; i < kSums; ++i) sums[0] = vadd(sums[0], sums[i]);
  float out[16], sum = 0;
  vstore(out, sums[0]);
  for (const float x : out) sum += x;
  return sum;
}
