#include "tensor/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace octavo {
namespace {

constexpr uint32_t kHalves = 65536;
constexpr float kInf = std::numeric_limits<float>::infinity();

bool is_nan16(uint32_t half) { return (half & 0x7fffu) > 0x7c00u; }

// The value of an f16 by the definition of the format.
double by_definition(uint16_t half) {
  const double sign = half & 0x8000 ? -1 : 1;
  const int exponent = (half >> 10) & 31;
  const int mantissa = half & 1023;
  if (exponent == 31) return sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(Half, EveryF16HasItsValue) {
  for (uint32_t h = 0; h < kHalves; ++h) {
    const float value = f16_to_f32(static_cast<uint16_t>(h));
    if (is_nan16(h)) {
      ASSERT_TRUE(std::isnan(value)) << h;
    } else {
      ASSERT_EQ(value, by_definition(static_cast<uint16_t>(h))) << h;
    }
    ASSERT_EQ(std::signbit(value), (h & 0x8000) != 0) << h;
  }
}

TEST(Half, EveryF16ComesBack) {
  for (uint32_t h = 0; h < kHalves; ++h) {
    const uint32_t quiet = is_nan16(h) ? 0x0200u : 0u;
    ASSERT_EQ(f32_to_f16(f16_to_f32(static_cast<uint16_t>(h))), h | quiet) << h;
  }
}

// Between two neighbours the nearer one is taken, halfway the even one, for every pair of
// neighbours.
TEST(Half, RoundsToNearestEvenEverywhere) {
  for (uint16_t h = 0; h < 0x7bff; ++h) {
    const uint16_t next = static_cast<uint16_t>(h + 1);
    const float low = f16_to_f32(h);
    const float middle = (low + f16_to_f32(next)) / 2;  // exact
    ASSERT_EQ(f32_to_f16(middle), h % 2 == 0 ? h : next) << h;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), h) << h;
    ASSERT_EQ(f32_to_f16(std::nextafter(middle, kInf)), next) << h;
    ASSERT_EQ(f32_to_f16(-middle), 0x8000u | (h % 2 == 0 ? h : next)) << h;
  }
}

TEST(Half, F16Extremes) {
  const struct {
    float value;
    uint16_t half;
  } cases[] = {
      {65504.0f, 0x7bff},   {65519.996f, 0x7bff}, {65520.0f, 0x7c00}, {1e30f, 0x7c00},
      {-1e30f, 0xfc00},     {kInf, 0x7c00},       {-kInf, 0xfc00},    {0x1p-25f, 0x0000},
      {0x1.8p-25f, 0x0001}, {1e-45f, 0x0000},     {-0.0f, 0x8000},    {0x1p-14f, 0x0400},
  };
  for (const auto& c : cases) EXPECT_EQ(f32_to_f16(c.value), c.half) << c.value;
  EXPECT_TRUE(is_nan16(f32_to_f16(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(is_nan16(f32_to_f16(std::bit_cast<float>(0x7f800001u)))) << "payload below f16's";
  static_assert(f32_to_f16(1.0f) == 0x3c00 && f16_to_f32(0xc000) == -2.0f);
}

TEST(Half, EveryBf16ComesBack) {
  for (uint32_t h = 0; h < kHalves; ++h) {
    const float value = bf16_to_f32(static_cast<uint16_t>(h));
    const bool nan = (h & 0x7fffu) > 0x7f80u;
    ASSERT_EQ(std::isnan(value), nan) << h;
    if (!nan) {
      ASSERT_EQ(std::bit_cast<uint32_t>(value), h << 16);
    }
    ASSERT_EQ(f32_to_bf16(value), h | (nan ? 0x0040u : 0u)) << h;
  }
}

TEST(Half, Bf16RoundsToNearestEven) {
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const uint32_t bits = static_cast<uint32_t>(random()) & 0xbf7fffffu;  // finite
    const uint32_t rest = bits & 0xffffu;
    const uint32_t low = bits >> 16;
    const bool up = rest > 0x8000u || (rest == 0x8000u && low % 2 == 1);
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(bits)), low + (up ? 1 : 0)) << bits;
  }
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80) << "tie to even, down";
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82) << "tie to even, up";
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80) << "rounds to infinity";
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace octavo
