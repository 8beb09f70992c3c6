#include "kv/kv_layout.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace octavo {
namespace {

constexpr KvLayout kSmolLm2{30, 3, 64, 32, KvType::f16};

TEST(KvLayout, SizesOfARealModel) {
  EXPECT_TRUE(validate(kSmolLm2));
  EXPECT_EQ(kSmolLm2.bytes_per_part(), 4096u);
  EXPECT_EQ(kSmolLm2.bytes_per_head(), 8192u);
  EXPECT_EQ(kSmolLm2.bytes_per_layer_block(), 3 * 8192u);
  EXPECT_EQ(kSmolLm2.bytes_per_block(), 30 * 3 * 8192u);
  EXPECT_EQ(kSmolLm2.bytes_per_block() / 32, 23040u);  // per token
  EXPECT_EQ(storage_bytes(kSmolLm2, 7).value(), 7 * kSmolLm2.bytes_per_block());
}

TEST(KvLayout, OffsetsFollowTheDocumentedOrder) {
  EXPECT_EQ(kSmolLm2.k_offset(BlockId{0}, 0, 0), 0u);
  EXPECT_EQ(kSmolLm2.v_offset(BlockId{0}, 0, 0), 4096u);
  EXPECT_EQ(kSmolLm2.k_offset(BlockId{0}, 0, 1), 8192u);
  EXPECT_EQ(kSmolLm2.k_offset(BlockId{0}, 1, 0), 3 * 8192u);
  EXPECT_EQ(kSmolLm2.k_offset(BlockId{5}, 4, 2), (5 * 30 + 4) * 3 * 8192u + 2 * 8192u);
  EXPECT_EQ(kSmolLm2.k_byte(0, 1), 2 * 16u);        // next dimension: 16 positions further
  EXPECT_EQ(kSmolLm2.k_byte(1, 0), 2 * 1u);         // next position: beside it
  EXPECT_EQ(kSmolLm2.k_byte(16, 0), 2 * 16u * 64);  // next group
  EXPECT_EQ(kSmolLm2.v_byte(0, 0), 0u);
  EXPECT_EQ(kSmolLm2.v_byte(1, 0), 2 * 64u);
  EXPECT_EQ(kSmolLm2.v_byte(0, 1), 2 * 1u);
}

TEST(KvLayout, Int8KeepsPairsTogetherAndScalesBehindTheirGroup) {
  constexpr KvLayout layout{30, 3, 64, 32, KvType::int8};
  EXPECT_TRUE(validate(layout));
  EXPECT_EQ(layout.bytes_per_part(), 32 * 68u);
  EXPECT_EQ(layout.bytes_per_block() / 32, 30 * 3 * 2 * 68u);  // per token: 0.53 of f16
  EXPECT_EQ(layout.k_byte(0, 1), 1u);                          // a pair of dimensions
  EXPECT_EQ(layout.k_byte(1, 0), 2u);
  EXPECT_EQ(layout.k_byte(0, 2), 32u);
  EXPECT_EQ(layout.v_byte(1, 0), 1u);  // a pair of positions
  EXPECT_EQ(layout.v_byte(0, 1), 2u);
  EXPECT_EQ(layout.v_byte(2, 0), 128u);
  EXPECT_EQ(layout.scale_byte(0), 16u * 64);
  EXPECT_EQ(layout.scale_byte(15), 16u * 64 + 60);
  EXPECT_EQ(layout.k_byte(16, 0), 16u * 68);
  EXPECT_EQ(layout.v_byte(16, 0), 16u * 68);
}

TEST(KvLayout, EveryByteBelongsToOneElement) {
  for (int block_size : {16, 32, 256})
    for (KvType type : {KvType::f32, KvType::f16, KvType::bf16, KvType::int8}) {
      const KvLayout layout{2, 3, 6, block_size, type};
      ASSERT_TRUE(validate(layout));
      constexpr int kBlocks = 2;
      std::vector<int> uses(kBlocks * layout.bytes_per_block());
      const auto use = [&](size_t begin, size_t count) {
        for (size_t i = begin; i < begin + count; ++i) ++uses.at(i);
      };
      for (int part = 0; part < kBlocks * 2 * 3; ++part) {
        const int block = part / 6, layer = part / 3 % 2, head = part % 3;
        const size_t k = layout.k_offset(BlockId{block}, layer, head);
        const size_t v = layout.v_offset(BlockId{block}, layer, head);
        for (int position = 0; position < block_size; ++position) {
          for (int dim = 0; dim < 6; ++dim) {
            use(k + layout.k_byte(position, dim), layout.element_bytes());
            use(v + layout.v_byte(position, dim), layout.element_bytes());
          }
          if (type != KvType::int8) continue;
          use(k + layout.scale_byte(position), sizeof(uint32_t));
          use(v + layout.scale_byte(position), sizeof(uint32_t));
        }
      }
      EXPECT_EQ(uses, std::vector<int>(uses.size(), 1));
    }
}

TEST(KvLayout, RefusesWhatItCannotHold) {
  constexpr int kHuge = std::numeric_limits<int>::max();
  struct Case {
    KvLayout layout;
    std::string named;
  };
  const Case cases[] = {
      {{0, 3, 64, 32, KvType::f16}, "0 layers"},
      {{30, -1, 64, 32, KvType::f16}, "-1 KV heads"},
      {{30, 3, 0, 32, KvType::f16}, "0 numbers per head"},
      {{30, 3, 64, 24, KvType::f16}, "block size is 24"},
      {{30, 3, 63, 32, KvType::int8}, "63 numbers per head"},
      {{kHuge, kHuge, kHuge, 256, KvType::f32}, "2 x 2147483647 x 2147483647 x 256 x 8589934588"},
  };
  for (const Case& c : cases) {
    for (const Result<void>& result :
         {validate(c.layout), storage_bytes(c.layout, 1).map([](size_t) {})}) {
      ASSERT_FALSE(result) << c.named;
      EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
      EXPECT_NE(result.error().message.find(c.named), std::string::npos) << result.error().message;
    }
  }
}

TEST(KvLayout, StorageSizeIsChecked) {
  EXPECT_FALSE(storage_bytes(kSmolLm2, 0));
  EXPECT_FALSE(storage_bytes(kSmolLm2, -1));
  EXPECT_FALSE(storage_bytes(kSmolLm2, std::numeric_limits<int64_t>::max()));
  const auto most = std::numeric_limits<int64_t>::max() / int64_t(kSmolLm2.bytes_per_block());
  EXPECT_TRUE(storage_bytes(kSmolLm2, most));
  EXPECT_FALSE(storage_bytes(kSmolLm2, most + 1));
}

}  // namespace
}  // namespace octavo
