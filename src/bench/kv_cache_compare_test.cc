#include "bench/kv_cache_compare.h"

#include <gtest/gtest.h>

#include "support/paths.h"

namespace octavo {
namespace {

Result<LoadedEngine> tiny_engine() {
  EngineOptions options;
  options.model = testing::test_data("tiny/llama-tied/llama-tied-F32.gguf");
  options.threads = 1;
  return load_engine(options);
}

TEST(KvCacheCompare, BothWaysGiveTheSameTokens) {
  const auto engine = tiny_engine();
  ASSERT_TRUE(engine) << engine.error().message;
  KvCacheCompareOptions options{
      .contexts = {1, 16, 100}, .gen_tokens = 4, .runs = 2, .on_progress = {}};
  int calls = 0;
  options.on_progress = [&](int done, int total) {
    EXPECT_EQ(done, calls++);
    EXPECT_EQ(total, 3);
  };
  const auto rows = compare_kv_cache(*engine, options);
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_EQ(rows->size(), 3u);
  EXPECT_EQ(calls, 3);
  for (size_t i = 0; i < rows->size(); ++i) {
    const KvCacheComparison& row = (*rows)[i];
    EXPECT_EQ(row.context, options.contexts[i]);
    EXPECT_TRUE(row.same_tokens);
    EXPECT_GT(row.with_cache_s, 0);
    EXPECT_DOUBLE_EQ(row.with_cache_tokens_per_s, 3 / row.with_cache_s);
    EXPECT_DOUBLE_EQ(row.without_cache_tokens_per_s, 3 / row.without_cache_s);
    EXPECT_DOUBLE_EQ(row.ratio(), row.without_cache_s / row.with_cache_s);
  }
}

TEST(KvCacheCompare, RefusesWhatDoesNotFitBeforeMeasuring) {
  const auto engine = tiny_engine();
  ASSERT_TRUE(engine);
  const auto never = [](int, int) { FAIL() << "nothing is to be measured"; };
  const auto rows = compare_kv_cache(
      *engine, {.contexts = {16, 100000}, .gen_tokens = 4, .runs = 1, .on_progress = never});
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, ErrorCode::context_overflow);
  const auto one = compare_kv_cache(
      *engine, {.contexts = {16}, .gen_tokens = 1, .runs = 1, .on_progress = never});
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace octavo
