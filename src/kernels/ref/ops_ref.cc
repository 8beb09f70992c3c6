// Every operation as its definition, one value at a time: the oracle for the fast paths, and what
// runs on a machine that has none of their instructions. It shares no code with them but the panel
// reader of pack.h.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/api.h"
#include "kernels/pack.h"
#include "kernels/panel_layout.h"
#include "kernels/panel_reader.h"
#include "kv/kv_layout.h"
#include "tensor/half.h"

namespace octavo::kernels {
namespace {

int64_t a8_index(const A8& x, int64_t t, int64_t b) {
  return (t / kA8Tokens * (x.cols / kBlock) + b) * kA8Tokens + t % kA8Tokens;
}

// What the products of one row and one token are made of.
struct A8Dot {
  const PanelMatrix& w;
  const A8& x;
  int64_t row, t;
  int parts, length;  // a block's parts with a scale of their own, and their length
  float acc = 0;

  static int32_t dot(const int* codes, const int8_t* q, int n) {
    int32_t sum = 0;
    for (int i = 0; i < n; ++i) sum += codes[i] * q[i];
    return sum;
  }

  // The terms of x.q, or of x.q_low, which counts 1/128 of it. The float part follows the fast
  // paths' formula to the bit: acc = fma(d * d_x, integer dot, acc), then, with q, acc = fma(m, d_x
  // * sum of both, acc) for types with a minimum.
  void add(int64_t b, const int8_t* q, float unit) {
    const RowBlock block = read_row_block(w, row, b);
    const int64_t i = a8_index(x, t, b);
    for (int part = 0; part < parts; ++part) {
      const int first = part * length;
      const int32_t sum = dot(block.codes.data() + first, q + i * kBlock + first, length);
      acc = std::fma(block.d[part] * x.d[i] * unit, static_cast<float>(sum), acc);
      const float s = parts == 1 ? x.s[i] : x.s_half[2 * i + part];
      if (block.has_min && q == x.q) acc = std::fma(block.m[part], s, acc);
    }
  }
};

float a8_dot(const PanelMatrix& w, int64_t row, const A8& x, int64_t t) {
  const PanelLayout& l = kPanelLayouts[static_cast<size_t>(w.type)];
  const int parts = l.scales == ScaleKind::k_sub16 || l.scales == ScaleKind::k_sub16_min ? 2 : 1;
  A8Dot dot{w, x, row, t, parts, kBlock / parts};
  const int64_t blocks = x.cols / kBlock;
  for (int64_t begin = 0; begin < blocks; begin += kChunk) {
    const int64_t end = std::min(begin + kChunk, blocks);
    for (int64_t b = begin; b < end; ++b) dot.add(b, x.q, 1.0f);
    for (int64_t b = begin; b < end; ++b)
      if (x.wide[a8_index(x, t, b)]) dot.add(b, x.q_low, 1.0f / 128);
  }
  return dot.acc;
}

void matmul_a8(const PanelMatrix& w, int64_t begin, int64_t end, const A8& x, int64_t tokens,
               float* y, int64_t y_stride) {
  for (int64_t row = begin * kPanelRows; row < end * kPanelRows; ++row)
    for (int64_t t = 0; t < tokens; ++t) y[t * y_stride + row] = a8_dot(w, row, x, t);
}

void matmul_f32(const PanelMatrix& w, int64_t begin, int64_t end, const float* x, int64_t x_stride,
                int64_t tokens, float* y, int64_t y_stride) {
  std::vector<float> weights(static_cast<size_t>(w.cols));
  for (int64_t row = begin * kPanelRows; row < end * kPanelRows; ++row) {
    unpack_row(w, row, weights.data());
    for (int64_t t = 0; t < tokens; ++t) {
      float sum = 0;
      for (int64_t k = 0; k < w.cols; ++k)
        sum += weights[static_cast<size_t>(k)] * x[t * x_stride + k];
      y[t * y_stride + row] = sum;
    }
  }
}

float largest_magnitude(const float* x) {
  float amax = 0;
  for (int i = 0; i < kBlock; ++i) {
    if (!std::isfinite(x[i])) return std::numeric_limits<float>::infinity();
    amax = std::max(amax, std::fabs(x[i]));
  }
  return amax;
}

void round_value(float scaled, bool wide, int8_t& q, int8_t& q_low) {
  const auto rounded = static_cast<int32_t>(std::lrint(scaled));
  const int32_t high = wide ? static_cast<int32_t>(std::floor((rounded + 64) / 128.0)) : rounded;
  q = static_cast<int8_t>(high);
  q_low = static_cast<int8_t>(wide ? rounded - 128 * high : 0);
}

void quantize_block(const float* x, float amax, bool wide, const A8& out, int64_t t, int64_t b) {
  const int64_t i = a8_index(out, t, b);
  const bool finite = std::isfinite(amax);
  const float inverse = amax > 0 ? (wide ? 128.0f : 1.0f) * kMaxQ / amax : 0.0f;
  const float scale = finite && std::isfinite(inverse) ? inverse : 0.0f;
  const float d = finite ? amax / kMaxQ : std::numeric_limits<float>::quiet_NaN();
  int32_t high[2] = {0, 0}, low[2] = {0, 0};
  for (int k = 0; k < kBlock; ++k) {
    const int64_t at = i * kBlock + k;
    round_value(finite ? x[k] * scale : 0.0f, wide, out.q[at], out.q_low[at]);
    high[k / 16] += out.q[at];
    low[k / 16] += out.q_low[at];
  }
  const auto real = [d](int32_t q, int32_t q_low) {
    return d / 128 * static_cast<float>(128 * q + q_low);
  };
  out.wide[i] = wide;
  out.d[i] = d;
  out.s[i] = real(high[0] + high[1], low[0] + low[1]);
  for (int half = 0; half < 2; ++half) out.s_half[2 * i + half] = real(high[half], low[half]);
  const int32_t sums[4] = {high[0] + high[1], high[0], low[0] + low[1], low[0]};
  std::copy_n(sums, 4, out.sum + 4 * i);
}

void quantize_a8(const float* x, const A8& out, int64_t t) {
  const int64_t blocks = out.cols / kBlock;
  std::vector<float> amax;
  float squares = 0;
  for (int64_t b = 0; b < blocks; ++b) {
    amax.push_back(largest_magnitude(x + b * kBlock));
    squares += amax.back() * amax.back();
  }
  const float limit = squares * (kWideThreshold / static_cast<float>(blocks));
  for (int64_t b = 0; b < blocks; ++b) {
    const float largest = amax[static_cast<size_t>(b)];
    quantize_block(x + b * kBlock, largest, largest * largest > limit, out, t, b);
  }
}

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* y) {
  float squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  const float scale = 1.0f / std::sqrt(squares / static_cast<float>(n) + eps);
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * weight[i];
}

void silu_mul(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

void gelu_mul(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    const double x = double{gate[i]};
    const double gelu = x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    y[i] = static_cast<float>(gelu) * up[i];
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, int64_t n,
                float* y) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += double{x[i]};
  const double mean = sum / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) squares += (double{x[i]} - mean) * (double{x[i]} - mean);
  const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + double{eps});
  for (int64_t i = 0; i < n; ++i)
    y[i] = static_cast<float>((double{x[i]} - mean) * scale) * weight[i] + bias[i];
}

void gelu_erf(const float* x, int64_t n, float* y) {
  for (int64_t i = 0; i < n; ++i) {
    const double value = double{x[i]};
    y[i] = static_cast<float>(value / 2 * (1 + std::erf(value * M_SQRT1_2)));
  }
}

void add(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] += y[i];
}

void add_scaled(float* x, const float* y, float scale, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] += scale * y[i];
}

float capped(float x, float cap) {
  if (!std::isfinite(x)) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(double{cap} * std::tanh(double{x} / double{cap}));
}

void softcap(float* x, float cap, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = capped(x[i], cap);
}

void rope(float* x, int heads, int head_dim, int half, bool interleaved, const float* cosines,
          const float* sines) {
  for (int h = 0; h < heads; ++h) {
    for (int i = 0; i < half; ++i) {
      float& a = x[h * head_dim + (interleaved ? 2 * i : i)];
      float& b = x[h * head_dim + (interleaved ? 2 * i + 1 : i + half)];
      const float rotated = a * cosines[i] - b * sines[i];
      b = b * cosines[i] + a * sines[i];
      a = rotated;
    }
  }
}

// The layout of kv/ says where numbers lie inside a block's head.
KvLayout layout_of(const KvLayer& kv) {
  return {.num_layers = 1,
          .num_kv_heads = 1,
          .head_dim = kv.head_dim,
          .block_size = kv.block_size,
          .type = kv.type};
}

float read_value(KvType type, const uint8_t* at, const uint8_t* scale) {
  if (type == KvType::f32 || type == KvType::int8) {
    uint32_t bits;
    std::memcpy(&bits, type == KvType::f32 ? at : scale, 4);
    if (type == KvType::f32) return std::bit_cast<float>(bits);
    return bf16_to_f32(static_cast<uint16_t>(bits >> 16)) * static_cast<int8_t>(*at) +
           bf16_to_f32(static_cast<uint16_t>(bits));
  }
  uint16_t half;
  std::memcpy(&half, at, 2);
  return type == KvType::f16 ? f16_to_f32(half) : bf16_to_f32(half);
}

void write_value(KvType type, uint8_t* at, float value) {
  if (type == KvType::f32) {
    std::memcpy(at, &value, 4);
    return;
  }
  if (type == KvType::int8) {
    *at = static_cast<uint8_t>(static_cast<int8_t>(std::lrint(value)));
    return;
  }
  const uint16_t half = type == KvType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
  std::memcpy(at, &half, 2);
}

// K of a block's head; V is v_offset further.
uint8_t* keys_of(const KvLayer& kv, int32_t block, int head) {
  return kv.base + static_cast<size_t>(block) * kv.block_stride +
         static_cast<size_t>(head) * kv.head_stride;
}

// int8: a number is code * scale + zero, |code| <= 127. Both are bf16; the scale is rounded up.
struct Int8Scale {
  float zero = 0;
  float up = 1;  // 1 / scale, or 0: all codes are 0
};

Int8Scale write_scale(uint8_t* at, const float* x, int n) {
  const auto [low, high] = std::minmax_element(x, x + n);
  const uint16_t zero_bits = f32_to_bf16(0.5f * *high + 0.5f * *low);
  const float zero = bf16_to_f32(zero_bits);
  const float reach = std::max(*high - zero, zero - *low) / kMaxQ;
  const bool finite = std::all_of(x, x + n, [](float v) { return std::isfinite(v); }) &&
                      std::isfinite(zero) && std::isfinite(reach);
  uint16_t scale_bits = f32_to_bf16(reach);
  if (bf16_to_f32(scale_bits) < reach) ++scale_bits;
  const float up = 1.0f / bf16_to_f32(scale_bits);
  const uint32_t both = finite ? static_cast<uint32_t>(scale_bits) << 16 | zero_bits : 0x7fc00000u;
  std::memcpy(at, &both, 4);
  return {zero, finite && std::isfinite(up) ? up : 0.0f};
}

void store_kv(const KvLayer& kv, int32_t block, int kv_head, int position, const float* k,
              const float* v) {
  const KvLayout layout = layout_of(kv);
  uint8_t* keys = keys_of(kv, block, kv_head);
  uint8_t* values = keys + kv.v_offset;
  Int8Scale of_k, of_v;  // other types are written as they are
  if (kv.type == KvType::int8) {
    of_k = write_scale(keys + layout.scale_byte(position), k, kv.head_dim);
    of_v = write_scale(values + layout.scale_byte(position), v, kv.head_dim);
  }
  for (int d = 0; d < kv.head_dim; ++d) {
    write_value(kv.type, keys + layout.k_byte(position, d),
                of_k.up == 0 ? 0 : (k[d] - of_k.zero) * of_k.up);
    write_value(kv.type, values + layout.v_byte(position, d),
                of_v.up == 0 ? 0 : (v[d] - of_v.zero) * of_v.up);
  }
}

// One query head of one token over positions [begin, end): softmax of all scores at once, no parts.
void attend_row(const AttentionItem& item, const float* q, int begin, int end, float* out) {
  const KvLayer& kv = *item.kv;
  const KvLayout layout = layout_of(kv);
  const auto keys = [&](int j) {
    return keys_of(kv, item.block_table[j / kv.block_size], item.kv_head);
  };
  std::vector<float> weights(static_cast<size_t>(end - begin));
  float maximum = -std::numeric_limits<float>::infinity();
  for (int j = begin; j < end; ++j) {
    const int place = j % kv.block_size;
    float score = 0;
    for (int d = 0; d < kv.head_dim; ++d)
      score += q[d] * read_value(kv.type, keys(j) + layout.k_byte(place, d),
                                 keys(j) + layout.scale_byte(place));
    score *= item.scale;
    if (item.score_cap > 0) score = capped(score, item.score_cap);
    weights[static_cast<size_t>(j - begin)] = score;
    maximum = std::max(maximum, score);
  }
  float sum = 0;
  for (float& weight : weights) sum += weight = std::exp(weight - maximum);
  for (int d = 0; d < kv.head_dim; ++d) {
    float value = 0;
    for (int j = begin; j < end; ++j) {
      const int place = j % kv.block_size;
      const uint8_t* values = keys(j) + kv.v_offset;
      value +=
          weights[static_cast<size_t>(j - begin)] *
          read_value(kv.type, values + layout.v_byte(place, d), values + layout.scale_byte(place));
    }
    out[d] = value / sum;
  }
}

// Parts do not exist here: the whole is computed when they are to be joined.
void merge_attention(const AttentionItem& item) {
  for (int t = 0; t < item.tokens; ++t) {
    const int end = item.first_position + t * item.step + 1;
    const int begin = item.window == 0 ? 0 : std::max(0, end - item.window);
    for (int g = 0; g < item.group; ++g)
      attend_row(item, item.q + t * item.q_stride + g * item.kv->head_dim, begin, end,
                 item.out + t * item.out_stride + g * item.kv->head_dim);
  }
}

void attention(const AttentionItem& item) {
  if (item.part == kAllParts) merge_attention(item);
}

uint64_t probe_read(const uint8_t* bytes, size_t n) {
  uint64_t sum = 0;
  for (size_t at = 0; at < n; at += sizeof(sum)) {
    uint64_t word;
    std::memcpy(&word, bytes + at, sizeof(word));
    sum += word;
  }
  return sum;
}

int32_t probe_int8(int64_t rounds) {
  int8_t codes[64], q[64];
  std::fill(std::begin(codes), std::end(codes), int8_t{1});
  std::fill(std::begin(q), std::end(q), int8_t{1});
  int32_t sums[kPanelRows] = {};
  for (int64_t step = 0; step < rounds * kProbeRound; ++step) {
    // As far as the compiler knows the factors change, so that it cannot multiply beforehand.
    asm volatile("" : : "r"(codes), "r"(q) : "memory");
    for (int i = 0; i < 64; ++i) sums[i / 4] += codes[i] * q[i];
  }
  return std::accumulate(std::begin(sums), std::end(sums), 0);
}

float probe_f32(int64_t rounds) {
  volatile float factor = 0.5f;
  float sums[kProbeF32MacsPerRound] = {};
  for (int64_t round = 0; round < rounds; ++round) {
    const float f = factor;
    for (float& sum : sums) sum = sum * f + f;
  }
  return std::accumulate(std::begin(sums), std::end(sums), 0.0f);
}

}  // namespace

extern const Ops kOps_ref;
const Ops kOps_ref = {
    .isa = "ref",
    .matmul_a8 = matmul_a8,
    .matmul_f32 = matmul_f32,
    .matmul_bf16 = nullptr,
    .quantize_a8 = quantize_a8,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .gelu_erf = gelu_erf,
    .add = add,
    .add_scaled = add_scaled,
    .softcap = softcap,
    .rope = rope,
    .store_kv = store_kv,
    .attention = attention,
    .merge_attention = merge_attention,
    .probes = {probe_read, probe_int8, probe_f32},
};

}  // namespace octavo::kernels
