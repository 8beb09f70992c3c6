#include "model/pooling_config.h"

#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "support/gguf_writer.h"

namespace octavo {
namespace {

Result<PoolingConfig> read(const char* architecture, const testing::GgufWriter& writer) {
  const std::string bytes = writer.build();
  const auto file = GgufFile::parse(std::as_bytes(std::span(bytes)), "made.gguf");
  if (!file) return tl::make_unexpected(file.error());
  ModelConfig config;
  config.architecture = find_architecture(architecture);
  config.hidden_size = 64;
  return read_pooling_config(*file, config);
}

TEST(PoolingConfig, WhatAFileDoesNotSay) {
  const auto decoder = read("qwen3", {}), encoder = read("bert", {});
  ASSERT_TRUE(decoder && encoder);
  EXPECT_EQ(decoder->type, PoolingType::last);
  EXPECT_EQ(encoder->type, PoolingType::mean);
  EXPECT_TRUE(decoder->normalize && encoder->normalize);
  EXPECT_FALSE(decoder->matryoshka || encoder->matryoshka);
  EXPECT_EQ(decoder->size, 64);
  EXPECT_FALSE(decoder->is_all);
  EXPECT_TRUE(encoder->is_all);
}

TEST(PoolingConfig, NumbersOfGguf) {
  const std::pair<uint32_t, PoolingType> types[] = {{0, PoolingType::last},
                                                    {1, PoolingType::mean},
                                                    {2, PoolingType::cls},
                                                    {3, PoolingType::last}};
  for (const auto& [number, type] : types) {
    const auto config = read("qwen3", testing::GgufWriter().u32("qwen3.pooling_type", number));
    ASSERT_TRUE(config) << config.error().message;
    EXPECT_EQ(config->type, type) << number;
  }
  for (const uint32_t number : {4u, 5u, 4'000'000'000u}) {
    const auto config = read("qwen3", testing::GgufWriter().u32("qwen3.pooling_type", number));
    ASSERT_FALSE(config);
    EXPECT_EQ(config.error().code, ErrorCode::unsupported);
    EXPECT_NE(config.error().message.find("pooling_type"), std::string::npos);
  }
  EXPECT_FALSE(read("qwen3", testing::GgufWriter().string("qwen3.pooling_type", "mean")));
}

}  // namespace
}  // namespace octavo
