#include "bench/latency.h"

#include <gtest/gtest.h>

#include "bench/work.h"
#include "support/paths.h"

namespace octavo {
namespace {

constexpr LatencyRoom kRoom = {.context_length = 256,
                               .block_size = 32,
                               .num_blocks = 64,
                               .bytes_per_block = 1000,
                               .free_bytes = 20 * 1000};

TEST(LatencyPlan, KeepsWhatFitsAndNamesWhatDoesNot) {
  // Blocks: depth 0 takes 1 per sequence (at least 2 for the prompt), depth 100 takes 5.
  const auto plan =
      plan_latency({.prompt_tokens = 50, .gen_tokens = 32}, {0, 100, 200}, {1, 4, 20, 70}, kRoom);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->cases,
            (std::vector<LatencyCase>{{0, 1}, {0, 4}, {0, 20}, {100, 1}, {100, 4}, {200, 1}}));
  ASSERT_EQ(plan->skipped.size(), 6u);
  const auto reason = [&](int depth, int batch_size) {
    for (const SkippedCase& skipped : plan->skipped)
      if (skipped.which == LatencyCase{depth, batch_size}) return skipped.reason;
    return std::string();
  };
  EXPECT_NE(reason(0, 70).find("70 blocks"), std::string::npos) << reason(0, 70);
  EXPECT_NE(reason(200, 4).find("memory"), std::string::npos) << reason(200, 4);
}

TEST(LatencyPlan, SaysWhyNothingFits) {
  const auto deep = plan_latency({}, {200}, {1}, kRoom);
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, ErrorCode::context_overflow);
  EXPECT_NE(deep.error().message.find("context is 256"), std::string::npos) << deep.error().message;
  const auto wide = plan_latency({.prompt_tokens = 1, .gen_tokens = 1}, {0}, {65}, kRoom);
  ASSERT_FALSE(wide);
  EXPECT_EQ(wide.error().code, ErrorCode::resource_exhausted);
  const auto large = plan_latency({.prompt_tokens = 1, .gen_tokens = 1}, {0}, {21}, kRoom);
  ASSERT_FALSE(large);
  EXPECT_NE(large.error().message.find("memory"), std::string::npos) << large.error().message;
}

TEST(LatencyPlan, RefusesNumbersOutOfRange) {
  for (const auto& plan : {plan_latency({.prompt_tokens = 0, .gen_tokens = 1}, {0}, {1}, kRoom),
                           plan_latency({.prompt_tokens = 1, .gen_tokens = 0}, {0}, {1}, kRoom),
                           plan_latency({}, {-1}, {1}, kRoom), plan_latency({}, {0}, {0}, kRoom),
                           plan_latency({}, {}, {1}, kRoom), plan_latency({}, {0}, {}, kRoom)}) {
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::invalid_argument);
  }
}

Result<LoadedEngine> tiny_engine(int sequences, std::string dtype = "auto") {
  EngineOptions options;
  options.model = testing::test_data("tiny/llama-tied/llama-tied-Q4_0.gguf");
  options.dtype = std::move(dtype);
  options.threads = 2;
  options.max_num_seqs = sequences;
  options.max_num_batched_tokens = 8;
  return load_model(options);
}

TEST(Work, CountsTheMatricesOnce) {
  for (const bool rounded : {true, false}) {
    const auto engine = tiny_engine(1, rounded ? "auto" : "float32");
    ASSERT_TRUE(engine) << engine.error().message;
    const ModelConfig& c = engine->config;
    const double q = c.num_heads * c.head_dim, kv = c.num_kv_heads * c.head_dim;
    const double layer =
        c.hidden_size * (2 * q + 2 * kv) + 3.0 * c.hidden_size * c.intermediate_size;
    const double head = double{1} * c.hidden_size * c.vocab_size;
    const double attention = 2 * q * c.num_layers;
    const WorkModel work(c, *engine->model);
    const Work step = work.decode_step(3, 9);
    const double products = 3 * (c.num_layers * layer + head);
    EXPECT_DOUBLE_EQ(rounded ? step.int8_macs : step.fp32_macs - 3 * attention * 10, products);
    EXPECT_DOUBLE_EQ(step.read_bytes, work.weight_bytes() + 3 * 10 * work.kv_bytes_per_token());
    EXPECT_DOUBLE_EQ(work.decode_step(3, 9, 4).read_bytes,
                     work.weight_bytes() + (3 * 6 + 4) * work.kv_bytes_per_token());
    EXPECT_EQ(work.kv_bytes_per_token(), 2 * kv * c.num_layers * (rounded ? 2 : 4));
    // Token i of a prompt sees `context` + i + 1 positions.
    const Work prompt = work.prefill(4, 5);
    EXPECT_DOUBLE_EQ(prompt.int8_macs + prompt.fp32_macs,
                     4 * c.num_layers * layer + head + attention * (6 + 7 + 8 + 9));
  }
}

TEST(Latency, MeasuresEveryCase) {
  for (const int shared_prefix : {0, 33, 1000}) {
    auto engine = tiny_engine(12);
    ASSERT_TRUE(engine) << engine.error().message;
    LatencyOptions options;
    options.lengths = {.prompt_tokens = 20, .gen_tokens = 3};
    options.depths = {40, 0};
    options.batch_sizes = {1, 12, 2};  // 12 do not fit one forward of 8 tokens
    options.repeat = 2;
    options.shared_prefix = shared_prefix;
    int calls = 0;
    options.on_progress = [&](int done, int total) {
      EXPECT_EQ(done, calls++);
      EXPECT_EQ(total, 6);
    };
    const auto report = measure_latency(*engine, options);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(calls, 6);
    EXPECT_TRUE(report->skipped.empty());
    EXPECT_GT(report->limits.read_gb_s, 0);
    EXPECT_GT(report->limits.int8_gmac_s, 0);
    EXPECT_GT(report->limits.fp32_gflop_s, 0);
    ASSERT_EQ(report->results.size(), 6u);
    const double weights = report->results[0].weight_bytes_per_token;
    for (size_t i = 0; i < 6; ++i) {
      const LatencyResult& r = report->results[i];
      EXPECT_EQ(r.which, (LatencyCase{options.depths[i / 3], options.batch_sizes[i % 3]}));
      EXPECT_GT(r.prefill_tok_s, 0);
      EXPECT_GT(r.decode_tok_s, 0);
      EXPECT_DOUBLE_EQ(r.weight_bytes_per_token, weights / r.which.batch_size);
      EXPECT_GT(r.kv_bytes_per_token, 0);
      for (const TimeShare* shares : {&r.prefill_time, &r.decode_time}) {
        EXPECT_EQ(shares->size(), kStepPartNames.size() + 1);
        EXPECT_EQ(shares->back().first, kRestOfTime);
        EXPECT_GT(outside_kernels(*shares), 0);
        EXPECT_LT(outside_kernels(*shares), 1);
        double sum = 0;
        for (const auto& [name, share] : *shares) sum += share;
        EXPECT_NEAR(sum, 1, 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace octavo
