#include "kv/kv_layout.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace octavo {
namespace {

constexpr KvLayout kSmolLm2{30, 3, 64, 32, DType::f16};

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
  EXPECT_EQ(kSmolLm2.k_offset(BlockId{0}, 0), 0u);
  EXPECT_EQ(kSmolLm2.v_offset(BlockId{0}, 0), 4096u);
  EXPECT_EQ(kSmolLm2.k_offset(BlockId{0}, 1), 8192u);
  EXPECT_EQ(kSmolLm2.k_offset(BlockId{5}, 2), 5 * 3 * 8192u + 2 * 8192u);
  EXPECT_EQ(kSmolLm2.k_index(0, 1), 16u);        // next dimension: 16 positions further
  EXPECT_EQ(kSmolLm2.k_index(1, 0), 1u);         // next position: beside it
  EXPECT_EQ(kSmolLm2.k_index(16, 0), 16u * 64);  // next group
  EXPECT_EQ(kSmolLm2.v_index(0, 0), 32u * 64);   // after all of K
  EXPECT_EQ(kSmolLm2.v_index(1, 0), 32u * 64 + 64);
  EXPECT_EQ(kSmolLm2.v_index(0, 1), 32u * 64 + 1);
}

TEST(KvLayout, EveryByteOfALayerBelongsToOneElement) {
  for (int block_size : {16, 32, 256})
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const KvLayout layout{2, 3, 5, block_size, dtype};
      ASSERT_TRUE(validate(layout));
      constexpr int kBlocks = 2;
      std::vector<int> uses(kBlocks * layout.bytes_per_layer_block());
      const auto use = [&](size_t offset, size_t index) {
        for (size_t b = 0; b < layout.element_bytes(); ++b)
          ++uses.at(offset + index * layout.element_bytes() + b);
      };
      for (int block = 0; block < kBlocks; ++block)
        for (int head = 0; head < 3; ++head)
          for (int position = 0; position < block_size; ++position)
            for (int dim = 0; dim < 5; ++dim) {
              const size_t start = layout.k_offset(BlockId{block}, head);
              use(start, layout.k_index(position, dim));
              use(start, layout.v_index(position, dim));
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
      {{0, 3, 64, 32, DType::f16}, "0 layers"},
      {{30, -1, 64, 32, DType::f16}, "-1 KV heads"},
      {{30, 3, 0, 32, DType::f16}, "0 numbers per head"},
      {{30, 3, 64, 24, DType::f16}, "block size is 24"},
      {{30, 3, 64, 32, DType::q8_0}, "type q8_0"},
      {{kHuge, kHuge, kHuge, 256, DType::f32},
       "2 x 2147483647 x 2147483647 x 2147483647 x 256 x 4"},
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
