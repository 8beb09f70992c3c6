// Layers that a step skips: it computes what a model without them would, and drafts of it never
// change an answer.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <random>

#include "engine/load.h"
#include "support/paths.h"
#include "support/temp_folder.h"
#include "support/test_model.h"

namespace octavo {
namespace {

using namespace testing;

std::vector<TokenId> random_tokens(size_t count, int vocab_size, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<TokenId> tokens;
  for (size_t i = 0; i < count; ++i)
    tokens.push_back(TokenId{static_cast<int>(rng() % static_cast<unsigned>(vocab_size))});
  return tokens;
}

// A model of which some layers may be missing.
struct Loaded {
  Loaded(const std::string& path, const std::vector<int>& missing) : pool(*ThreadPool::create(2)) {
    const auto file = open_model(path, {});
    auto config = *read_model_config(**file);
    auto weights = *load_weights(**file, config, *pool, {});
    for (size_t i = missing.size(); i-- > 0;) {
      const auto layer = missing[i];
      weights.layers.erase(weights.layers.begin() + layer);
      if (!config.windows.empty()) config.windows.erase(config.windows.begin() + layer);
      --config.num_layers;
    }
    model = *Transformer::create(std::move(config), std::move(weights),
                                 **kernels::select_isa_from_environment(), *pool,
                                 {.num_blocks = 4, .all_threads = true});
    for (int i = 0; i < 4; ++i) table.push_back(BlockId{3 - i});
  }

  // Of every token, in chunks.
  std::vector<float> logits(std::span<const TokenId> tokens, std::span<const int> skipped,
                            size_t chunk) {
    const ModelLimits& limits = model->limits();
    const auto stride = static_cast<size_t>(limits.logits_stride);
    std::vector<float> out, row(stride);
    for (size_t first = 0; first < tokens.size(); first += chunk) {
      const size_t count = std::min(chunk, tokens.size() - first);
      const BatchSequence sequence{0, static_cast<int>(count), static_cast<int>(first), table};
      model->forward({.tokens = tokens.subspan(first, count),
                      .sequences = {&sequence, 1},
                      .skipped_layers = skipped});
      for (int i = 0; std::cmp_less(i, count); ++i) {
        model->logits({&i, 1}, row.data());
        out.insert(out.end(), row.begin(), row.begin() + limits.vocab_size);
      }
    }
    return out;
  }

  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Transformer> model;
  std::vector<BlockId> table;
};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(EarlyExit, SkippedLayersAreAsIfTheyWereNotThere) {
  for (const char* name : {"llama-rope3/llama-rope3-Q4_0", "gemma3/gemma3-Q4_0",
                           "mixtral/mixtral-Q8_0", "phi3/phi3-Q4_0", "olmo2/olmo2-F32"}) {
    SCOPED_TRACE(name);
    const std::string path = tiny_data(std::string(name) + ".gguf");
    Loaded whole(path, {});
    const int layers = whole.model->limits().num_layers;
    const auto tokens = random_tokens(70, whole.model->limits().vocab_size, 3);
    const auto complete = whole.logits(tokens, {}, 70);
    for (const std::vector<int>& skipped :
         {std::vector{0}, std::vector{layers - 1}, std::vector{layers / 2}}) {
      SCOPED_TRACE(skipped[0]);
      Loaded without(path, skipped);
      const auto expected = without.logits(tokens, {}, 70);
      EXPECT_FALSE(same_bits(expected, complete));
      for (const size_t chunk : {size_t{1}, size_t{9}, size_t{70}})
        EXPECT_TRUE(same_bits(whole.logits(tokens, skipped, chunk), expected)) << chunk;
      EXPECT_TRUE(same_bits(whole.logits(tokens, {}, 70), complete));
    }
  }
}

RequestOutput generate(Engine& engine, const Request& request) {
  std::promise<RequestOutput> promise;
  RequestEvents events;
  events.on_finish = [&](RequestOutput output) { promise.set_value(std::move(output)); };
  EXPECT_TRUE(engine.submit(request, std::move(events)));
  return promise.get_future().get();
}

EngineOptions options_of(const std::string& config) {
  EngineOptions options{.model = tiny_data("llama-rope3/llama-rope3-Q4_0.gguf"), .threads = 2};
  options.speculative_config = config;
  return options;
}

TEST(EarlyExit, WithoutSkippedLayersEveryDraftComesTrue) {
  Request request{.prompt_token_ids = random_tokens(30, 500, 4)};
  request.params.max_tokens = 41;
  request.params.ignore_eos = true;
  for (const double temperature : {0.0, 1.0}) {
    request.params.temperature = temperature;
    request.params.seed = 5;
    const auto plain = load_engine(options_of(""));
    const auto guesses = load_engine(
        options_of(R"({"method": "early-exit", "skip_layers": [], "num_speculative_tokens": 4,
                       "adaptive": false, "draft_confidence_threshold": 0})"));
    ASSERT_TRUE(plain && guesses);
    const RequestOutput expected = generate(*plain->engine, request);
    const RequestOutput actual = generate(*guesses->engine, request);
    EXPECT_EQ(actual.outputs[0].token_ids, expected.outputs[0].token_ids);
    EXPECT_EQ(actual.metrics.num_draft_tokens, 32);  // one token, then five with each step
    EXPECT_EQ(actual.metrics.num_accepted_tokens, 32);
    EXPECT_EQ(actual.metrics.decode_steps, 8);
  }
}

TEST(EarlyExit, WhatCannotBeSkippedIsRefusedAtLoad) {
  const auto refused = [](const std::string& config) {
    const auto engine = load_engine(options_of(config));
    return engine ? std::string() : engine.error().message;
  };
  EXPECT_NE(refused(R"({"method": "early_exit", "skip_layers": [99]})").find("layer 99"),
            std::string::npos);
  EXPECT_NE(refused(R"({"method": "early_exit", "skip_layers": [1, 1]})").find("twice"),
            std::string::npos);
  EXPECT_NE(refused(R"({"method": "early_exit"})").find("octavo tune early-exit"),
            std::string::npos);
  std::string all = "0";
  for (int i = 1; i < Loaded(options_of("").model, {}).model->limits().num_layers; ++i)
    all += fmt::format(", {}", i);
  EXPECT_NE(
      refused(fmt::format(R"({{"method": "early_exit", "skip_layers": [{}]}})", all)).find("all"),
      std::string::npos);
}

}  // namespace
}  // namespace octavo
