// Reading P16 panels (panel_layout.h), written once against the vocabulary of vec.h.

template <DType T>
constexpr PanelLayout kLayout = kPanelLayouts[static_cast<int>(T)];

template <DType T>
constexpr int code_bits() {
  constexpr PanelLayout l = kLayout<T>;
  if (l.plane4 < 0 && l.plane2 < 0) return 8;
  return (l.plane4 >= 0 ? 4 : 0) + (l.plane2 >= 0 ? 2 : 0) + (l.plane1 >= 0 ? 1 : 0);
}

template <DType T>
constexpr bool kHalves =
    kLayout<T>.scales == ScaleKind::k_sub16 || kLayout<T>.scales == ScaleKind::k_sub16_min;
template <DType T>
constexpr bool kHasMin =
    kLayout<T>.scales == ScaleKind::d_m || kLayout<T>.scales == ScaleKind::d_z ||
    kLayout<T>.scales == ScaleKind::k_sub32 || kLayout<T>.scales == ScaleKind::k_sub16_min;

// Line kLine of a block as codes, one per byte.
template <DType T, int kLine>
[[gnu::always_inline]] inline Line code_line(const uint8_t* block) {
  constexpr PanelLayout l = kLayout<T>;
  if constexpr (code_bits<T>() == 8) {
    return line_load(block + 64 * kLine);
  } else {
    Line codes;
    if constexpr (l.plane4 >= 0)
      codes = line_and(
          line_shift < kLine < 4 ? 0 : -4 > (line_load(block + l.plane4 + 64 * (kLine % 4))), 15);
    if constexpr (l.plane2 >= 0) {
      const Line two = line_and(
          line_shift<l.shift2 - 2 * (kLine % 4)>(line_load(block + l.plane2 + 64 * (kLine / 4))),
          3 << l.shift2);
      if constexpr (l.plane4 >= 0)
        codes = line_or(codes, two);
      else
        codes = two;
    }
    if constexpr (l.plane1 >= 0)
      codes = line_or(codes, line_and(line_shift<l.shift1 - kLine>(line_load(block + l.plane1)),
                                      1 << l.shift1));
    return codes;
  }
}

struct Scales {  // of 16 rows: w = d * (c - offset) + m; [1] is the second half of a block where
                 // halves differ
  Vf d[2];
  Vf m[2];
};

inline Vf vneg(Vf x) { return vsub(vset(-0.0f), x); }

template <DType T>
[[gnu::always_inline]] inline Scales block_scales(const uint8_t* sub, const uint8_t* super) {
  constexpr ScaleKind kind = kLayout<T>.scales;
  Scales s;
  if constexpr (kind == ScaleKind::d || kind == ScaleKind::d_m || kind == ScaleKind::d_z)
    s.d[0] = vload_f16(sub);
  if constexpr (kind == ScaleKind::d_m) s.m[0] = vload_f16(sub + 32);
  if constexpr (kind == ScaleKind::d_z) s.m[0] = vneg(vmul(s.d[0], vload_u8(sub + 32)));
  if constexpr (kind == ScaleKind::k_sub32) {
    s.d[0] = vmul(vload_f16(super), vload_u8(sub));
    s.m[0] = vneg(vmul(vload_f16(super + 32), vload_u8(sub + 16)));
  }
  if constexpr (kind == ScaleKind::k_sub16)
    for (int half = 0; half < 2; ++half)
      s.d[half] = vmul(vload_f16(super), vload_i8(sub + 16 * half));
  if constexpr (kind == ScaleKind::k_sub16_min) {
    for (int half = 0; half < 2; ++half) {
      const Vi both = vi_load_u8(sub + 16 * half);
      s.d[half] = vmul(vload_f16(super), vi_to_float(vi_and(both, vi_set(15))));
      s.m[half] = vneg(vmul(vload_f16(super + 32), vi_to_float(vi_shr<4>(both))));
    }
  }
  return s;
}

// The three arrays of a panel, from block `first` on; first is a multiple of 8.
template <DType T>
struct PanelPointers {
  const uint8_t* codes;
  const uint8_t* sub;
  const uint8_t* super;
  PanelPointers(const uint8_t* panel, int64_t blocks, int64_t first = 0)
      : codes(panel + first * kLayout<T>.code_bytes),
        sub(panel + blocks * kLayout<T>.code_bytes + first * kLayout<T>.sub_bytes),
        super(panel + blocks * (kLayout<T>.code_bytes + kLayout<T>.sub_bytes) +
              first / 8 * kLayout<T>.super_bytes) {}
};
