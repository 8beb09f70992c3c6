#include "kernels/pack.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "kernels/panel_layout.h"
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

TEST(Pack, PanelsKeptElsewhereAreUsedThere) {
  const StoredMatrix m = random_matrix(DType::q4_k, 40, 512, 3);
  const PackedMatrix own = packed(m);
  const auto size = static_cast<size_t>(own.view().panels()) * own.view().panel_bytes;
  const std::span panels(reinterpret_cast<const std::byte*>(own.view().data), size);
  const auto other = PackedMatrix::over(DType::q4_k, 40, 512, panels);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_EQ(other->view().data, own.view().data);
  EXPECT_EQ(other->view().panel_bytes, own.view().panel_bytes);
  EXPECT_FALSE(other->empty());

  EXPECT_FALSE(PackedMatrix::over(DType::q4_k, 40, 512, panels.first(size - 1)));
  EXPECT_FALSE(PackedMatrix::over(DType::q4_k, 16, 512, panels));
  EXPECT_FALSE(PackedMatrix::over(DType::q4_k, 40, 500, panels));
  EXPECT_FALSE(PackedMatrix::over(DType::q8_0, 32, 256, panels.subspan(8, 2 * 8 * 544)));
}

// Panels lie on users' disks. If a hash changes, the bytes of panels did: give kPanelLayoutVersion
// its next number, and the new hashes to that.
TEST(Pack, BytesOfPanelsBelongToTheLayoutVersion) {
  ASSERT_EQ(kPanelLayoutVersion, 1u);
  const struct {
    DType type;
    uint64_t hash;
  } cases[] = {
      {DType::f32, 0x444b96c022a3a0b0},  {DType::f16, 0x74d08400a71d66be},
      {DType::bf16, 0x967c5498c76f714d}, {DType::q4_0, 0xa699abd317fde124},
      {DType::q4_1, 0xf64dd801e7ebdc4c}, {DType::q5_0, 0x2e0b94167fa8b2f4},
      {DType::q5_1, 0x0f4c6b3b8206b316}, {DType::q8_0, 0xaa6da3e308eb4186},
      {DType::q2_k, 0xcf3cc25b1247c36c}, {DType::q3_k, 0x39eead80e58aa335},
      {DType::q4_k, 0xe864b9cac26944d1}, {DType::q5_k, 0x45728e965bb840fe},
      {DType::q6_k, 0xf105910d398339c1}, {DType::q4_z, 0x2354881e4b81cb9f},
  };
  static_assert(std::size(cases) == std::size(kAllTypes));
  for (const auto& c : cases) {
    // 17 rows: the second panel has padding.
    std::vector<std::byte> bytes(17 * row_bytes(c.type, 512));
    uint32_t state = 1;
    for (std::byte& b : bytes) {
      state = state * 1664525 + 1013904223;
      b = static_cast<std::byte>(state >> 24);
    }
    StoredMatrix m{std::move(bytes), {}};
    m.view.type = c.type;
    m.view.shape = {512, 17, 1, 1};
    m.view.rank = 2;
    m.view.data = m.bytes;
    const PackedMatrix p = packed(m);
    const auto size = static_cast<size_t>(p.view().panels()) * p.view().panel_bytes;
    const uint64_t hash = hash64({reinterpret_cast<const std::byte*>(p.view().data), size});
    EXPECT_EQ(hash, c.hash) << fmt::format("{}: {:#018x}", name(c.type), hash);
  }
}

}  // namespace
}  // namespace octavo::kernels
