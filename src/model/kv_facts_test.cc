#include "model/kv_facts.h"

#include <gtest/gtest.h>

#include "formats/gguf.h"
#include "support/paths.h"

namespace octavo {
namespace {

TEST(KvFacts, OfARunnableModel) {
  const auto file = GgufFile::open(testing::test_data("tiny/qwen2/qwen2-F16.gguf"));
  const auto facts = read_kv_facts(*file);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->family, "qwen2");
  EXPECT_EQ(facts->shape.num_heads, 4);
  EXPECT_TRUE(facts->shape.windows.empty());
}

// Metadata of a family that is not run here: Qwen2's vocabulary file has no tensors, and that does
// not matter.
TEST(KvFacts, NeedNoTensors) {
  const auto file = GgufFile::open(testing::unpacked("qwen2-vocab.gguf"));
  const auto facts = read_kv_facts(*file);
  ASSERT_TRUE(facts) << facts.error().message;
  EXPECT_EQ(facts->shape.num_layers, 28);
  EXPECT_EQ(facts->shape.num_kv_heads, 4);
  EXPECT_EQ(facts->shape.head_dim, 128);
  const auto kv = estimate(facts->shape, 8192, 1, KvType::f16, 32);
  EXPECT_EQ(kv->total_bytes, 469762048);  // 0.4375 GiB
}

TEST(KvFacts, WindowsOfGemma3) {
  const auto file = GgufFile::open(testing::unpacked("gemma3-vocab.gguf"));
  const auto facts = read_kv_facts(*file);
  ASSERT_TRUE(facts) << facts.error().message;
  ASSERT_EQ(facts->shape.windows.size(), 18u);
  for (size_t i = 0; i < 18; ++i) EXPECT_EQ(facts->shape.windows[i], i % 6 == 5 ? 0 : 512) << i;
}

}  // namespace
}  // namespace octavo
