#include "bench/speculative.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/paths.h"

namespace octavo {
namespace {

EngineOptions tiny_options() {
  EngineOptions options;
  options.model = testing::test_data("tiny/llama-tied/llama-tied-F32.gguf");
  options.threads = 2;
  options.max_num_seqs = 3;
  options.max_num_batched_tokens = 64;
  return options;
}

SpeculativeOptions few_tokens() {
  return {.engine = tiny_options(),
          .methods = {{.name = "ngram", .config = R"({"method": "ngram"})"},
                      {.name = "suffix", .config = R"({"method": "suffix"})"}},
          .tasks = {"random"},
          .batch_sizes = {1, 3},
          .output_len = 12,
          .num_prompts = 2,
          .repeat = 2,
          .ignore_eos = true};
}

const SpeculativeRow& find(const std::vector<SpeculativeRow>& rows, std::string_view task,
                           int batch_size, std::string_view method) {
  for (const SpeculativeRow& row : rows)
    if (row.task == task && row.batch_size == batch_size && row.method == method) return row;
  throw std::runtime_error("no such row");
}

TEST(SpeculativeTasks, EachHasPromptsOfItsOwn) {
  const auto engine = load_model(tiny_options());
  ASSERT_TRUE(engine) << engine.error().message;
  for (const std::string_view name : speculative_task_names()) {
    const auto all = make_speculative_task(*engine, name, 100);
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_GE(all->prompts.size(), 4u) << name;
    for (const auto& prompt : all->prompts) EXPECT_FALSE(prompt.empty()) << name;
    const auto two = make_speculative_task(*engine, name, 2);
    ASSERT_TRUE(two);
    EXPECT_EQ(two->prompts, (std::vector{all->prompts[0], all->prompts[1]}));
  }
  const auto unknown = make_speculative_task(*engine, "poetry", 1);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("copy, code, chat, random"), std::string::npos);
}

TEST(Speculative, SetsEveryMethodBesideNone) {
  const auto engine = load_model(tiny_options());
  ASSERT_TRUE(engine) << engine.error().message;
  SpeculativeOptions options = few_tokens();
  int calls = 0;
  options.on_progress = [&](int done, int total) {
    EXPECT_EQ(done, calls++);
    EXPECT_EQ(total, 6);
  };
  const auto rows = measure_speculation(*engine, options);
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(calls, 6);
  ASSERT_EQ(rows->size(), 6u);
  for (const SpeculativeRow& row : *rows) {
    EXPECT_EQ(row.same_answers, true) << row.method;
    EXPECT_GT(row.tok_s, 0);
    EXPECT_LE(row.lowest, row.speedup);
    EXPECT_LE(row.speedup, row.highest);
    EXPECT_GE(row.tokens_per_step, 1);
    EXPECT_FALSE(row.predicted);
    ASSERT_EQ(row.record.requests.size(), row.batch_size == 1 ? 2u : 6u);
    for (const RequestRecord& request : row.record.requests) {
      EXPECT_EQ(request.token_s.size(), 12u);
      EXPECT_EQ(request.finish_reason, "length");
    }
  }
  const SpeculativeRow& off = find(*rows, "random", 3, "off");
  EXPECT_EQ(off.speedup, 1);
  EXPECT_EQ(off.tokens_per_step, 1);
  EXPECT_EQ(off.acceptance, 0);
}

TEST(Speculative, GuessesThatAlwaysComeTrueFillTheirSteps) {
  const auto engine = load_model(tiny_options());
  ASSERT_TRUE(engine) << engine.error().message;
  SpeculativeOptions options = few_tokens();
  options.batch_sizes = {1};
  options.methods = {{.name = "always", .synthetic = 1.0, .adaptive = false},
                     {.name = "never", .synthetic = 0.0, .adaptive = false}};
  const auto rows = measure_speculation(*engine, options);
  ASSERT_TRUE(rows) << rows.error().message;
  const SpeculativeRow& always = find(*rows, "random", 1, "always");
  EXPECT_EQ(always.acceptance, 1);
  EXPECT_GT(always.tokens_per_step, 1);
  ASSERT_TRUE(always.predicted);
  EXPECT_GE(always.predicted->speedup, 1);
  const SpeculativeRow& never = find(*rows, "random", 1, "never");
  EXPECT_EQ(never.acceptance, 0);
  EXPECT_EQ(never.tokens_per_step, 1);
  for (const SpeculativeRow& row : *rows) EXPECT_EQ(row.same_answers, true) << row.method;
}

TEST(Speculative, RefusesWhatCannotBe) {
  const auto engine = load_model(tiny_options());
  ASSERT_TRUE(engine) << engine.error().message;
  const auto refused = [&](auto change) {
    SpeculativeOptions options = few_tokens();
    change(options);
    const auto rows = measure_speculation(*engine, options);
    return rows ? ErrorCode::cancelled : rows.error().code;
  };
  EXPECT_EQ(refused([](auto& o) { o.tasks = {"poetry"}; }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.tasks.clear(); }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.batch_sizes = {0}; }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.output_len = 1; }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.methods[0].config = "{}"; }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.methods[0].synthetic = 1.5; }), ErrorCode::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.output_len = 1 << 20; }), ErrorCode::context_overflow);
}

TEST(Speculative, SaysWhichTaskIsTooLong) {
  const auto engine = load_model(tiny_options());
  ASSERT_TRUE(engine) << engine.error().message;
  SpeculativeOptions options = few_tokens();
  options.tasks = {"random", "code"};
  const auto rows = measure_speculation(*engine, options);
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, ErrorCode::context_overflow);
  const auto says = [&](const std::string& part) {
    return rows.error().message.find(part) != std::string::npos;
  };
  EXPECT_TRUE(says("the task code needs ")) << rows.error().message;
  EXPECT_TRUE(says(fmt::format("the context holds {}", engine->max_model_len)));
}

}  // namespace
}  // namespace octavo
