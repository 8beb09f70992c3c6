// Blocks of 256. Each group of 16 or 32 values looks for the scale (and minimum) that loses least,
// by trying a few; then the scales of the groups are rounded themselves, and the values once more
// with what came of that.
//
// Sums are taken in f32 and in exactly this order: another order would choose other codes now and
// then.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/half.h"
#include "tensor/quantize_blocks.h"

namespace octavo {
namespace {

constexpr float kNothing = 1e-15f;  // a group whose values are all smaller counts as zero

// The nearest integer, ties to even, of |x| < 2^22: the addition leaves it in the low bits of the
// mantissa. Defined for every x, NaN included, as is whatever comes of it.
int nearest(float x) {
  const auto bits = __builtin_bit_cast(uint32_t, x + 12582912.0f);  // 1.5 * 2^23
  return static_cast<int>(bits & 0x7fffffu) - 0x400000;
}

int nearest_in(float x, int low, int high) { return std::clamp(nearest(x), low, high); }

// --- Q4_K and Q5_K: x = scale * q - minimum ---------------------------------------------------

constexpr int kAffineGroup = 32;
constexpr int kAffineGroups = kSuperBlock / kAffineGroup;

// Which scales are tried: (first + step * i + highest code) / range, for 0 <= i <= last.
struct Trials {
  float first;
  float step;
  int last;
};

struct AffineGroup {
  float scale = 0;
  float low = 0;  // minus the minimum; never above 0
  int codes[kAffineGroup] = {};
};

class AffineSearch {
 public:
  AffineSearch(const float* values, int highest) : values_(values), highest_(highest) {
    weigh();
    low_ = high_ = values[0];
    sum_weight_ = weights_[0];
    sum_value_ = weights_[0] * values[0];
    for (int i = 1; i < kAffineGroup; ++i) {
      low_ = std::min(low_, values[i]);
      high_ = std::max(high_, values[i]);
      sum_weight_ += weights_[i];
      sum_value_ += weights_[i] * values[i];
    }
    if (low_ > 0) low_ = 0;
  }

  AffineGroup best(const Trials& trials) const {
    AffineGroup best;
    best.low = low_;
    if (high_ == low_) return best;
    const float inverse = static_cast<float>(highest_) / (high_ - low_);
    best.scale = 1 / inverse;
    round(inverse, low_, best);
    float least = error(best);
    for (int i = 0; i <= trials.last; ++i) {
      // What is tried next starts from the best minimum so far.
      AffineGroup group;
      const float steps = trials.first + trials.step * static_cast<float>(i);
      round((steps + static_cast<float>(highest_)) / (high_ - best.low), best.low, group);
      if (!fit(group)) continue;
      const float lost = error(group);
      if (!(lost < least)) continue;
      least = lost;
      best = group;
    }
    return best;
  }

 private:
  // Large values matter more, but small ones matter too.
  void weigh() {
    float squares = 0;
    for (int i = 0; i < kAffineGroup; ++i) squares += values_[i] * values_[i];
    const float typical = std::sqrt(squares / kAffineGroup);
    for (int i = 0; i < kAffineGroup; ++i) weights_[i] = typical + std::fabs(values_[i]);
  }

  void round(float inverse, float low, AffineGroup& group) const {
    for (int i = 0; i < kAffineGroup; ++i)
      group.codes[i] = nearest_in(inverse * (values_[i] - low), 0, highest_);
  }

  // The scale and minimum that suit the codes best, by weighted least squares. False: all codes are
  // alike, so there is no such scale.
  bool fit(AffineGroup& group) const {
    float sum_code = 0, sum_square = 0, sum_product = 0;
    for (int i = 0; i < kAffineGroup; ++i) {
      const auto code = static_cast<float>(group.codes[i]);
      sum_code += weights_[i] * code;
      sum_square += weights_[i] * code * code;
      sum_product += weights_[i] * code * values_[i];
    }
    const float determinant = sum_weight_ * sum_square - sum_code * sum_code;
    if (!(determinant > 0)) return false;
    group.scale = (sum_weight_ * sum_product - sum_value_ * sum_code) / determinant;
    group.low = (sum_square * sum_value_ - sum_code * sum_product) / determinant;
    if (group.low > 0) {
      group.low = 0;
      group.scale = sum_product / sum_square;
    }
    return true;
  }

  float error(const AffineGroup& group) const {
    float sum = 0;
    for (int i = 0; i < kAffineGroup; ++i) {
      const float off = group.scale * static_cast<float>(group.codes[i]) + group.low - values_[i];
      sum += weights_[i] * (off * off);
    }
    return sum;
  }

  const float* values_;
  int highest_;
  float weights_[kAffineGroup];
  float low_, high_, sum_weight_, sum_value_;
};

// The other way round than k_scale_min().
void store_scale_min(int g, int scale, int min, uint8_t (&scales)[12]) {
  if (g < 4) {
    scales[g] = static_cast<uint8_t>(scale);
    scales[g + 4] = static_cast<uint8_t>(min);
    return;
  }
  scales[g + 4] = static_cast<uint8_t>((scale & 15) | (min & 15) << 4);
  scales[g - 4] = static_cast<uint8_t>(scales[g - 4] | (scale >> 4) << 6);
  scales[g] = static_cast<uint8_t>(scales[g] | (min >> 4) << 6);
}

// A scale in units of the largest one's 63rd part.
int six_bits(float inverse, float value) {
  return std::min<int>(63, static_cast<uint8_t>(nearest(inverse * value)));
}

// Fills d, dmin and scales, and the codes of all values.
template <class Block>
void encode_affine(const float* values, int highest, const Trials& trials, Block& block,
                   int (&codes)[kSuperBlock]) {
  AffineGroup groups[kAffineGroups];
  float max_scale = 0, max_min = 0;
  for (int g = 0; g < kAffineGroups; ++g) {
    groups[g] = AffineSearch(values + g * kAffineGroup, highest).best(trials);
    max_scale = std::max(max_scale, groups[g].scale);
    max_min = std::max(max_min, -groups[g].low);
  }
  const float inverse_scale = max_scale > 0 ? 63.0f / max_scale : 0.0f;
  const float inverse_min = max_min > 0 ? 63.0f / max_min : 0.0f;
  for (int g = 0; g < kAffineGroups; ++g)
    store_scale_min(g, six_bits(inverse_scale, groups[g].scale),
                    six_bits(inverse_min, -groups[g].low), block.scales);
  block.d = f32_to_f16(max_scale / 63.0f);
  block.dmin = f32_to_f16(max_min / 63.0f);
  for (int g = 0; g < kAffineGroups; ++g) {
    const ScaleMin stored = k_scale_min(block.scales, g);
    const float d = f16_to_f32(block.d) * static_cast<float>(stored.scale);
    const float m = f16_to_f32(block.dmin) * static_cast<float>(stored.min);
    for (int i = 0; i < kAffineGroup; ++i) {
      const int at = g * kAffineGroup + i;
      codes[at] = d != 0 ? nearest_in((values[at] + m) / d, 0, highest) : groups[g].codes[i];
    }
  }
}

void store_nibble_runs(const int (&codes)[kSuperBlock], uint8_t (&qs)[128]) {
  for (int i = 0; i < 128; ++i) {
    const int* pair = codes + i / 32 * 64 + i % 32;
    qs[i] = static_cast<uint8_t>((pair[0] & 15) | (pair[32] & 15) << 4);
  }
}

// --- Q6_K: x = scale * (q - 32) ---------------------------------------------------------------

constexpr int kCentredGroup = 16;
constexpr int kCentredGroups = kSuperBlock / kCentredGroup;
constexpr int kMiddle = 32;

struct CentredGroup {
  float scale = 0;
  int codes[kCentredGroup] = {};  // q - 32; of a group that counts as zero -32, as stored zeros are
};

class CentredSearch {
 public:
  explicit CentredSearch(const float* values) : values_(values) {
    for (int i = 0; i < kCentredGroup; ++i)
      if (std::fabs(values[i]) > std::fabs(extreme_)) extreme_ = values[i];
  }

  CentredGroup best() const {
    CentredGroup best;
    if (std::fabs(extreme_) < kNothing) {
      std::fill_n(best.codes, kCentredGroup, -kMiddle);
      return best;
    }
    Sums sums = round(-kMiddle / extreme_, best);
    best.scale = sums.squares != 0 ? sums.products / sums.squares : 0.0f;
    float most = best.scale * sums.products;
    for (int i = -9; i <= 9; ++i) {
      if (i == 0) continue;
      CentredGroup group;
      sums = round(-(kMiddle + 0.1f * static_cast<float>(i)) / extreme_, group);
      if (!(sums.squares > 0 && sums.products * sums.products > most * sums.squares)) continue;
      best = group;
      best.scale = sums.products / sums.squares;
      most = best.scale * sums.products;
    }
    return best;
  }

 private:
  struct Sums {
    float products = 0;
    float squares = 0;
  };

  // Weighted by the values' squares.
  Sums round(float inverse, CentredGroup& group) const {
    Sums sums;
    for (int i = 0; i < kCentredGroup; ++i) {
      group.codes[i] = nearest_in(inverse * values_[i], -kMiddle, kMiddle - 1);
      const auto code = static_cast<float>(group.codes[i]);
      const float weight = values_[i] * values_[i];
      sums.products += weight * values_[i] * code;
      sums.squares += weight * code * code;
    }
    return sums;
  }

  const float* values_;
  float extreme_ = 0;
};

// codes: q, 0..63.
void store(const int (&codes)[kSuperBlock], BlockQ6_K& block) {
  for (int i = 0; i < 128; ++i) {
    const int* pair = codes + i / 64 * 128 + i % 64;
    block.ql[i] = static_cast<uint8_t>((pair[0] & 15) | (pair[64] & 15) << 4);
  }
  for (int i = 0; i < 64; ++i) {
    const int* four = codes + i / 32 * 128 + i % 32;
    block.qh[i] = static_cast<uint8_t>(four[0] >> 4 | four[32] >> 4 << 2 | four[64] >> 4 << 4 |
                                       four[96] >> 4 << 6);
  }
}

}  // namespace

void encode(const float* values, BlockQ4_K& block) {
  int codes[kSuperBlock];
  encode_affine(values, 15, {-1.0f, 0.1f, 20}, block, codes);
  store_nibble_runs(codes, block.qs);
}

void encode(const float* values, BlockQ5_K& block) {
  int codes[kSuperBlock];
  encode_affine(values, 31, {-0.5f, 0.1f, 15}, block, codes);
  store_nibble_runs(codes, block.qs);
  std::memset(block.qh, 0, sizeof(block.qh));
  for (int i = 0; i < kSuperBlock; ++i)
    block.qh[i % 32] = static_cast<uint8_t>(block.qh[i % 32] | (codes[i] >> 4) << (i / 32));
}

void encode(const float* values, BlockQ6_K& block) {
  CentredGroup groups[kCentredGroups];
  float largest = 0;
  for (int g = 0; g < kCentredGroups; ++g) {
    groups[g] = CentredSearch(values + g * kCentredGroup).best();
    if (std::fabs(groups[g].scale) > std::fabs(largest)) largest = groups[g].scale;
  }
  if (std::fabs(largest) < kNothing) {
    std::memset(&block, 0, sizeof(block));
    return;
  }
  const float inverse = -128.0f / largest;
  block.d = f32_to_f16(1 / inverse);
  int codes[kSuperBlock];
  for (int g = 0; g < kCentredGroups; ++g) {
    block.scales[g] = static_cast<int8_t>(std::min(127, nearest(inverse * groups[g].scale)));
    const float d = f16_to_f32(block.d) * static_cast<float>(block.scales[g]);
    for (int i = 0; i < kCentredGroup; ++i) {
      const int at = g * kCentredGroup + i;
      const int q = d != 0 ? nearest_in(values[at] / d, -kMiddle, kMiddle - 1) : groups[g].codes[i];
      codes[at] = q + kMiddle;
    }
  }
  store(codes, block);
}

}  // namespace octavo
