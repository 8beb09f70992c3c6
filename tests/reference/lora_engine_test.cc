// Adapters through the engine: answers are those given alone, and nothing is found in the cache
// that another adapter, or another content of the same name, put there.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "engine/load.h"
#include "support/expect_same.h"
#include "support/lora_files.h"
#include "support/paths.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

using namespace testing;

constexpr int kPrompt = 50;  // tokens; of a known prompt all but the last are found

using Adapter = std::shared_ptr<const LoraAdapter>;

LoadedEngine engine_of(EngineOptions options) {
  options.model = tiny_data("llama-tied/llama-tied-Q4_0.gguf");
  options.threads = 2;
  options.block_size = 16;
  options.kv_cache_memory_bytes = 4 << 20;
  auto engine = load_engine(options);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return std::move(*engine);
}

class LoraEngine : public ::testing::Test {
 protected:
  std::string write(unsigned seed, const std::string& name) {
    return MadeLora(tiny_data("llama-tied"), {.seed = seed, .rank = 8, .size = 0.1f})
        .write_peft(folder_.file(name));
  }
  Adapter load(const LoadedEngine& engine, const std::string& path) {
    auto adapter = load_adapter(path, engine.config, 64);
    EXPECT_TRUE(adapter) << (adapter ? "" : adapter.error().message);
    return *adapter;
  }
  static Request request(int first, Adapter adapter, std::string salt = {}) {
    Request r;
    for (int i = 0; i < kPrompt; ++i)
      r.prompt_token_ids.push_back(TokenId{(first + 7 * i) % 200 + 1});
    r.params.max_tokens = 12;
    r.params.temperature = 0;
    r.params.ignore_eos = true;
    r.params.logprobs = 1;
    r.cache_salt = std::move(salt);
    r.adapter = std::move(adapter);
    return r;
  }
  static RequestOutput run(const LoadedEngine& engine, Request r) {
    auto output = engine.engine->run(std::move(r));
    EXPECT_TRUE(output) << (output ? "" : output.error().message);
    return *output;
  }
  static float logprob(const RequestOutput& output) {
    return output.outputs[0].logprobs[0].entries[0].logprob;
  }

  TempFolder folder_;
};

TEST_F(LoraEngine, NothingIsFoundUnderAnotherKey) {
  const LoadedEngine engine = engine_of({.max_lora_rank = 64});
  const Adapter x = load(engine, write(1, "x")), y = load(engine, write(2, "y"));
  const auto first = run(engine, request(3, x));
  EXPECT_EQ(first.num_cached_tokens, 0);
  EXPECT_EQ(run(engine, request(3, x)).num_cached_tokens, kPrompt - 1);
  EXPECT_EQ(run(engine, request(3, nullptr)).num_cached_tokens, 0);
  EXPECT_EQ(run(engine, request(3, y)).num_cached_tokens, 0);
  EXPECT_EQ(run(engine, request(3, x, "salt")).num_cached_tokens, 0);
  // A salt that is spelled like the adapter is no adapter.
  EXPECT_EQ(run(engine, request(3, nullptr, x->identity())).num_cached_tokens, 0);
  EXPECT_EQ(run(engine, request(3, nullptr)).num_cached_tokens, kPrompt - 1);
}

TEST_F(LoraEngine, AnotherContentOfTheSameNameFindsNothing) {
  const LoadedEngine engine = engine_of({.max_lora_rank = 64});
  const auto before = run(engine, request(3, load(engine, write(1, "name"))));
  const auto other = run(engine, request(3, load(engine, write(2, "name"))));
  EXPECT_EQ(other.num_cached_tokens, 0);
  EXPECT_NE(logprob(before), logprob(other));
  // The first content again is known again, and says the same.
  const auto again = run(engine, request(3, load(engine, write(1, "name"))));
  EXPECT_EQ(again.num_cached_tokens, kPrompt - 1);
  EXPECT_EQ(again.outputs[0].token_ids, before.outputs[0].token_ids);
  EXPECT_EQ(logprob(again), logprob(before));
}

TEST_F(LoraEngine, CompanyChangesNothing) {
  const std::string a = write(1, "a"), b = write(2, "b");
  std::vector<Request> requests;
  std::vector<RequestOutput> expected;
  {
    const LoadedEngine engine = engine_of({.enable_prefix_caching = false, .max_lora_rank = 64});
    const Adapter x = load(engine, a), y = load(engine, b);
    for (int i = 0; i < 18; ++i) {
      requests.push_back(request(i % 4, i % 3 == 0 ? nullptr : i % 3 == 1 ? x : y));
      requests.back().params.n = i % 5 == 0 ? 3 : 1;
      requests.back().params.temperature = i % 2;
      requests.back().params.seed = i;
      expected.push_back(run(engine, requests.back()));
    }
  }
  for (const int tokens : {7, 32, 512}) {
    const LoadedEngine engine =
        engine_of({.max_num_seqs = 7, .max_num_batched_tokens = tokens, .max_lora_rank = 64});
    std::vector<std::promise<RequestOutput>> outputs(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      RequestEvents events;
      events.on_finish = [&, i](RequestOutput output) { outputs[i].set_value(std::move(output)); };
      ASSERT_TRUE(engine.engine->submit(requests[i], std::move(events)));
    }
    for (size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      expect_equal(outputs[i].get_future().get(), expected[i]);
    }
  }
}

// The last one who holds an adapter is the request that has it.
TEST_F(LoraEngine, AnAdapterLivesAsLongAsItsRequests) {
  const LoadedEngine engine = engine_of({.max_lora_rank = 64});
  Adapter adapter = load(engine, write(1, "a"));
  const auto expected = run(engine, request(3, adapter));
  const std::weak_ptr<const LoraAdapter> watched = adapter;
  std::promise<RequestOutput> output;
  RequestEvents events;
  events.on_finish = [&](RequestOutput o) { output.set_value(std::move(o)); };
  ASSERT_TRUE(engine.engine->submit(request(3, std::move(adapter)), std::move(events)));
  adapter.reset();
  expect_equal(output.get_future().get(), expected);
  engine.engine->inspect([](EngineCore&) {});
  EXPECT_TRUE(watched.expired());
}

TEST_F(LoraEngine, OneForAllIsThatOfRequestsThatNameNone) {
  const std::string path = write(1, "a");
  const LoadedEngine with = engine_of({.lora = path});
  const LoadedEngine plain = engine_of({.max_lora_rank = 8});
  const auto expected = run(plain, request(3, load(plain, path)));
  expect_equal(run(with, request(3, nullptr)), expected);
  EXPECT_NE(logprob(run(plain, request(3, nullptr))), logprob(expected));
}

TEST_F(LoraEngine, WhatDoesNotFitIsRefused) {
  const LoadedEngine small = engine_of({.max_lora_rank = 4}), none = engine_of({});
  const Adapter adapter = load(none, write(1, "a"));
  for (const LoadedEngine* engine : {&small, &none}) {
    const auto refused = engine->engine->run(request(3, adapter));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(refused.error().message.find("max_lora_rank"), std::string::npos);
  }
  EXPECT_FALSE(load_engine(
      {.model = tiny_data("llama-tied/llama-tied-Q4_0.gguf"), .lora = folder_.file("nothing")}));
}

}  // namespace
}  // namespace octavo
