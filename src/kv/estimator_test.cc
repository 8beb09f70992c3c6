#include "kv/estimator.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "kv/block_size.h"
#include "kv/kv_layout.h"

namespace octavo {
namespace {

constexpr int64_t kMiB = 1 << 20, kGiB = 1 << 30;
const KvShape kQwen7b{28, 28, 4, 128, {}};
const KvShape kLlama7b{32, 32, 32, 128, {}};
const KvShape kSmolLm2{30, 9, 3, 64, {}};

TEST(Estimator, KnownModels) {
  struct Case {
    const char* name;
    KvShape shape;
    int64_t seq_len, batch_size;
    KvType type;
    int64_t bytes;
    double gqa_ratio;
  };
  const Case cases[] = {
      {"Qwen2.5-7B: 0.4375 GiB", kQwen7b, 8192, 1, KvType::f16, 448 * kMiB, 7},
      {"32 layers, 32 heads of 128: 2 GiB", kLlama7b, 4096, 1, KvType::f16, 2 * kGiB, 1},
      {"the same as MQA", {32, 32, 1, 128, {}}, 4096, 1, KvType::f16, 64 * kMiB, 32},
      {"bf16 is as large as f16", kQwen7b, 8192, 1, KvType::bf16, 448 * kMiB, 7},
      {"f32 is twice that", kQwen7b, 8192, 1, KvType::f32, 896 * kMiB, 7},
      {"eight sequences", kQwen7b, 8192, 8, KvType::f16, 8 * 448 * kMiB, 7},
      {"SmolLM2", kSmolLm2, 2048, 16, KvType::f16, int64_t{23040} * 2048 * 16, 3},
  };
  for (const Case& c : cases) {
    const auto result = estimate(c.shape, c.seq_len, c.batch_size, c.type, 32);
    ASSERT_TRUE(result) << c.name;
    EXPECT_EQ(result->exact_bytes, c.bytes) << c.name;
    EXPECT_EQ(result->total_bytes, c.bytes) << c.name;
    EXPECT_EQ(result->windowed_bytes, c.bytes) << c.name;
    EXPECT_EQ(result->lost_bytes(), 0) << c.name;
    EXPECT_DOUBLE_EQ(result->gqa_ratio(), c.gqa_ratio) << c.name;
  }
}

TEST(Estimator, LengthsAreRoundedUpToBlocks) {
  constexpr int64_t kPerToken = 23040;
  for (int block_size : kBlockSizes)
    for (int64_t seq_len : {1, 15, 16, 17, 255, 256, 257, 1000}) {
      const auto result = estimate(kSmolLm2, seq_len, 3, KvType::f16, block_size);
      ASSERT_TRUE(result);
      const int64_t rounded = (seq_len + block_size - 1) / block_size * block_size;
      EXPECT_EQ(result->exact_bytes, 3 * seq_len * kPerToken);
      EXPECT_EQ(result->total_bytes, 3 * rounded * kPerToken);
      EXPECT_EQ(result->lost_bytes(), 3 * (rounded - seq_len) * kPerToken);
      EXPECT_EQ(result->bytes_without_gqa, 3 * result->total_bytes);
    }
}

TEST(Estimator, PrintsWhatTheStorageAllocates) {
  const KvLayout layout{30, 3, 64, 64, KvType::f32};
  const auto result = estimate(kSmolLm2, 1000, 5, KvType::f32, 64);
  EXPECT_EQ(static_cast<size_t>(result->total_bytes),
            storage_bytes(layout, 5 * blocks_for(1000, 64)).value());
}

TEST(Estimator, WindowedLayersKeepTheBlocksTheyCanSee) {
  const KvLayout layout{4, 1, 256, 32, KvType::f16};
  const auto layer_block = static_cast<int64_t>(layout.bytes_per_layer_block());
  struct Case {
    std::vector<int> windows;
    int64_t seq_len;
    int64_t layer_blocks;  // over all layers
  };
  const Case cases[] = {
      {{}, 4096, 4 * 128},
      {{0, 0, 0, 0}, 4096, 4 * 128},
      // 512 positions begin anywhere in a block: 15 whole blocks and two ends, 17 together.
      {{512, 512, 512, 0}, 4096, 3 * 17 + 128},
      {{512, 512, 512, 0}, 100, 4 * 4},  // shorter than the window
      {{512, 512, 512, 512}, 512, 4 * 16},
      {{1, 2, 33, 34}, 4096, 1 + 2 + 2 + 3},
      {{100'000, 0, 0, 0}, 4096, 4 * 128},
  };
  for (const Case& c : cases) {
    const auto result = estimate({4, 4, 1, 256, c.windows}, c.seq_len, 2, KvType::f16, 32);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->windowed_bytes, 2 * c.layer_blocks * layer_block) << c.seq_len;
    EXPECT_EQ(result->total_bytes, 2 * 4 * blocks_for(c.seq_len, 32) * layer_block);
  }
}

TEST(Estimator, CountsTheSequencesThatFit) {
  const auto result = estimate(kQwen7b, 8192, 3, KvType::f16, 32);
  EXPECT_EQ(result->bytes_per_sequence(), 448 * kMiB);
  EXPECT_EQ(result->sequences_that_fit(4 * kGiB), 9);
  EXPECT_EQ(result->sequences_that_fit(448 * kMiB), 1);
  EXPECT_EQ(result->sequences_that_fit(448 * kMiB - 1), 0);
  EXPECT_EQ(result->sequences_that_fit(0), 0);
  EXPECT_EQ(result->sequences_that_fit(-kGiB), 0);
}

TEST(Estimator, RefusesByName) {
  constexpr int kHuge = std::numeric_limits<int>::max();
  constexpr int64_t kHugest = std::numeric_limits<int64_t>::max();
  struct Case {
    KvShape shape;
    int64_t seq_len, batch_size;
    KvType type;
    int block_size;
    std::string named;
  };
  const Case cases[] = {
      {kQwen7b, 0, 1, KvType::f16, 32, "sequence length of 0"},
      {kQwen7b, 1, -1, KvType::f16, 32, "batch size of -1"},
      {kQwen7b, 1, 1, KvType::f16, 33, "block size is 33"},
      {{28, 28, 5, 128, {}}, 1, 1, KvType::f16, 32, "28 query heads over 5 KV heads"},
      {{28, 28, 0, 128, {}}, 1, 1, KvType::f16, 32, "28 query heads over 0 KV heads"},
      {{28, -4, 4, 128, {}}, 1, 1, KvType::f16, 32, "-4 query heads"},
      {{0, 4, 4, 128, {}}, 1, 1, KvType::f16, 32, "0 layers"},
      {{2, 4, 4, 128, {512}}, 1, 1, KvType::f16, 32, "1 attention windows for 2 layers"},
      {{1, 4, 4, 128, {-1}}, 1, 1, KvType::f16, 32, "window of -1"},
      {kQwen7b, kHugest, kHugest, KvType::f16, 32, "too many to count"},
      {kQwen7b, kHugest, 1, KvType::f16, 32, " bytes is not possible"},
      {{kHuge, kHuge, kHuge, kHuge, {}}, 1, 1, KvType::f16, 32, " bytes is not possible"},
      {{1, kHuge, 1, kHuge, {}}, 1024, 1024, KvType::f16, 32, " bytes is not possible"},
  };
  for (const Case& c : cases) {
    const auto result = estimate(c.shape, c.seq_len, c.batch_size, c.type, c.block_size);
    ASSERT_FALSE(result) << c.named;
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(result.error().message.find(c.named), std::string::npos) << result.error().message;
  }
}

}  // namespace
}  // namespace octavo
