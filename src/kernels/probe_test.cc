#include <gtest/gtest.h>

#include "kernels/test_util.h"

namespace octavo::kernels {
namespace {

using testing::ops;

// That all of the work is done: each byte read, each product added.
TEST(Probes, ReadEveryByte) {
  std::vector<uint8_t> bytes(4096, 0);
  const uint64_t zeros = ops().probes.read(bytes.data(), bytes.size());
  for (const size_t at : {0, 63, 64, 511, 512, 3000, 4095}) {
    bytes[at] = 1;
    EXPECT_NE(ops().probes.read(bytes.data(), bytes.size()), zeros) << at;
    bytes[at] = 0;
  }
}

TEST(Probes, EachRoundAddsItsProducts) {
  const int32_t none = ops().probes.int8(0);
  const int32_t products = 16 * 4 * kProbeRound;
  EXPECT_EQ(ops().probes.int8(1) - none, products);
  EXPECT_EQ(ops().probes.int8(1000) - none, 1000 * products);
}

TEST(Probes, FloatsConverge) {
  // x = x / 2 + 1/2 goes to 1 from wherever it starts.
  const float one = ops().probes.f32(1), many = ops().probes.f32(1000);
  EXPECT_NE(one, many);
  EXPECT_EQ(many, ops().probes.f32(2000));
}

}  // namespace
}  // namespace octavo::kernels
