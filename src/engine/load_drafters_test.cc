// Draft models from files: what they share with the model, and which are refused.
#include "engine/load_drafters.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/load.h"
#include "support/paths.h"
#include "support/temp_folder.h"
#include "support/tiny_bert.h"

namespace octavo {
namespace {

using namespace testing;
using nlohmann::json;

std::string tiny_model(const std::string& type) {
  return test_data("tiny/llama-tied/llama-tied-" + type + ".gguf");
}

// With `draft` guessing for it; none if it is empty.
EngineOptions options_with(const std::string& draft) {
  EngineOptions options{.model = tiny_model("F32"), .threads = 1};
  options.max_num_seqs = 4;
  if (!draft.empty())
    options.speculative_config =
        json{{"method", "draft_model"}, {"model", draft}, {"adaptive", false}}.dump();
  return options;
}

LoadedEngine load(const EngineOptions& options) {
  auto engine = load_engine(options);
  EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
  return engine ? std::move(*engine) : LoadedEngine();
}

Error refused(const EngineOptions& options) {
  const auto engine = load_engine(options);
  EXPECT_FALSE(engine);
  return engine ? Error{} : engine.error();
}

bool says(const Error& error, const std::string& part) {
  return error.message.find(part) != std::string::npos;
}

std::vector<TokenId> answer(const LoadedEngine& engine, int max_tokens = 30) {
  Request request{{TokenId{1}, TokenId{7}, TokenId{9}}, {}};
  request.params.temperature = 0;
  request.params.max_tokens = max_tokens;
  request.params.ignore_eos = true;
  const auto output = engine.engine->run(request);
  EXPECT_TRUE(output && !output->error);
  return output ? output->outputs.at(0).token_ids : std::vector<TokenId>();
}

SpeculatorStats stats(const LoadedEngine& engine) {
  SpeculatorStats out;
  engine.engine->inspect([&](EngineCore& core) { out = core.speculator()->stats(); });
  return out;
}

// The tiny model with another description.
void write_changed(const TempFolder& folder, const std::function<void(json&)>& change) {
  const std::string from = test_data("tiny/llama-tied");
  for (const char* name : {"model.safetensors", "tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy(from + "/" + name, folder.file(name));
  json config = json::parse(read_file(from + "/config.json"));
  change(config);
  std::ofstream(folder.file("config.json")) << config.dump();
}

TEST(DraftModel, ItsPackIsKeptLikeTheModels) {
  const TempFolder temp;
  EngineOptions options = options_with(tiny_model("Q8_0"));
  const auto expected = answer(load(options));
  EXPECT_EQ(load(options).draft.pack_job, nullptr);  // without a folder nothing is kept
  options.pack_folder = temp.file("packs");
  EXPECT_EQ(load(options).draft.pack, nullptr);
  const LoadedEngine again = load(options);
  EXPECT_NE(again.pack, nullptr);
  ASSERT_NE(again.draft.pack, nullptr);
  EXPECT_TRUE(again.draft.pack_job->verdict());
  EXPECT_EQ(answer(again), expected);
}

TEST(DraftModel, ItMayBeTheModelItself) {
  const TempFolder temp;
  EngineOptions options = options_with(tiny_model("F32"));
  options.pack_folder = temp.file("packs");
  const auto expected = answer(load(options_with("")));
  for (int start = 0; start < 2; ++start) {
    const LoadedEngine engine = load(options);
    EXPECT_EQ(engine.draft.pack != nullptr, start == 1);
    EXPECT_EQ(answer(engine), expected);
    EXPECT_EQ(stats(engine).num_accepted_tokens, stats(engine).num_draft_tokens);
  }
}

TEST(DraftModel, BothCachesHoldAsManyTokensInTheMemoryThereIs) {
  EngineOptions options = options_with("");
  const int64_t one = load(options).bytes_per_block;
  options.kv_cache_memory_bytes = 12 * one;
  options.max_model_len = 6 * options.block_size;
  EXPECT_EQ(load(options).model->limits().num_blocks, 12);

  options.speculative_config = options_with(tiny_model("Q8_0")).speculative_config;
  const LoadedEngine both = load(options);
  ASSERT_TRUE(both.draft.model);
  EXPECT_EQ(both.draft_bytes_per_block, one);  // of one shape
  EXPECT_EQ(both.model->limits().num_blocks, 6);
  EXPECT_EQ(both.draft.model->limits().num_blocks, 6);
  answer(both);
  EXPECT_EQ(stats(both).blocks.all, 6);
  EXPECT_EQ(stats(both).blocks.free + stats(both).blocks.cached, 6);

  options.max_model_len = 7 * options.block_size;
  const Error error = refused(options);
  EXPECT_EQ(error.code, ErrorCode::resource_exhausted);
  EXPECT_TRUE(says(error, "the KV cache of model and draft model")) << error.message;
  EXPECT_TRUE(says(error, fmt::format("--kv-cache-memory-bytes to {}", 7 * 2 * one)))
      << error.message;
}

TEST(DraftModel, BeyondItsContextNothingIsGuessed) {
  constexpr int kContext = 64, kAnswer = 150;
  const TempFolder temp;
  write_changed(temp, [&](json& config) { config["max_position_embeddings"] = kContext; });
  const auto expected = answer(load(options_with("")), kAnswer);
  const LoadedEngine engine = load(options_with(temp.file("")));
  EXPECT_EQ(answer(engine, kAnswer), expected);
  EXPECT_GT(stats(engine).num_accepted_tokens, kContext / 2);
  EXPECT_LE(stats(engine).num_draft_tokens, kContext);
}

TEST(DraftModel, AnEncoderIsRefused) {
  const TempFolder temp;
  write_tiny_bert(temp, json::parse(read_file(test_data("tiny/bert/reference.json")))["config"]);
  const Error error = refused(options_with(temp.file("")));
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_TRUE(says(error, "is an encoder")) << error.message;
}

TEST(DraftModel, OtherTokensAreRefused) {
  const TempFolder temp;
  write_changed(temp, [](json&) {});
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"}) {
    std::string text = read_file(temp.file(name));
    for (size_t at; (at = text.find("<|pad|>")) != std::string::npos;)
      text.replace(at, 7, "<|fill|>");
    std::ofstream(temp.file(name)) << text;
  }
  const Error error = refused(options_with(temp.file("")));
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_TRUE(says(error, "take one with the same vocabulary")) << error.message;
}

}  // namespace
}  // namespace octavo
