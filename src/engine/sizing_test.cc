#include "engine/sizing.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

// A model of 4096 tokens, and memory for as many blocks of 16.
SizingRequest blocks_of_16(int64_t num_blocks) {
  SizingRequest request;
  request.kv_cache_memory_bytes = num_blocks * 1000;
  request.context_length = 4096;
  request.block_size = 16;
  request.bytes_per_block = 1000;
  return request;
}

TEST(Sizing, TheContextIsWhatFitsAndSaysSo) {
  const auto sizing = size_kv_cache(blocks_of_16(100));
  ASSERT_TRUE(sizing) << sizing.error().message;
  EXPECT_EQ(sizing->max_model_len, 1600);
  EXPECT_NE(sizing->note.find("1600 tokens of the model's 4096"), std::string::npos);
}

TEST(Sizing, TooLittleToBeOfUseIsRefused) {
  EXPECT_EQ(size_kv_cache(blocks_of_16(16))->max_model_len, 256);
  const auto refused = size_kv_cache(blocks_of_16(15));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message.find("256"), std::string::npos) << refused.error().message;
}

TEST(Sizing, WhoAsksForLittleGetsIt) {
  SizingRequest request = blocks_of_16(2);
  request.max_model_len = 32;
  EXPECT_EQ(size_kv_cache(request)->max_model_len, 32);
}

TEST(Sizing, AShortModelNeedsNoMoreThanItHas) {
  SizingRequest request = blocks_of_16(4);
  request.context_length = 64;
  const auto sizing = size_kv_cache(request);
  ASSERT_TRUE(sizing) << sizing.error().message;
  EXPECT_EQ(sizing->max_model_len, 64);
}

}  // namespace
}  // namespace octavo
