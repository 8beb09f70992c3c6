#include "kernels/pack.h"

#include <gtest/gtest.h>

#include "kernels/test_util.h"
#include "tensor/dequant.h"

namespace octavo::kernels {
namespace {

using namespace testing;

TEST(Pack, EveryRowComesBackAsTheFileHasIt) {
  for (DType type : kAllTypes)
    for (int64_t rows : {1, 15, 16, 17, 40})
      for (int64_t cols : {256, 768}) {
        const StoredMatrix m = random_matrix(type, rows, cols, 1);
        const PackedMatrix p = packed(m);
        std::vector<float> expected(static_cast<size_t>(cols)), actual(expected);
        for (int64_t row = 0; row < rows; ++row) {
          const size_t bytes = row_bytes(type, static_cast<size_t>(cols));
          dequantize_row(type, m.bytes.data() + static_cast<size_t>(row) * bytes, expected.data(),
                         cols);
          unpack_row(p.view(), row, actual.data());
          ASSERT_EQ(std::memcmp(expected.data(), actual.data(), expected.size() * 4), 0)
              << name(type) << " row " << row << " of " << rows << " x " << cols;
        }
      }
}

TEST(Pack, BitsPerWeightStayNearlyTheSame) {
  for (DType type : kAllTypes) {
    const double file = static_cast<double>(row_bytes(type, 4096)) * 16;
    EXPECT_LE(static_cast<double>(panel_bytes(type, 4096)), 1.04 * file) << name(type);
  }
}

TEST(Pack, WidthThatDoesNotFitTheTypeIsRefused) {
  EXPECT_FALSE(PackedMatrix::allocate(DType::q4_0, 16, 48));
  EXPECT_FALSE(PackedMatrix::allocate(DType::q6_k, 16, 128));
  EXPECT_FALSE(PackedMatrix::allocate(DType::f32, 0, 128));
}

}  // namespace
}  // namespace octavo::kernels
