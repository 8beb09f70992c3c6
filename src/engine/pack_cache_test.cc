#include "engine/pack_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "engine/load.h"
#include "engine/score.h"
#include "formats/gguf.h"
#include "support/paths.h"
#include "support/temp_folder.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using testing::test_data;

constexpr char kModel[] = "tiny/llama-tied/llama-tied-Q4_0.gguf";

class PackCacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = temp_.file("model.gguf");
    fs::copy_file(test_data(kModel), model_);
  }

  Result<LoadedEngine> load(const std::string& model) const {
    EngineOptions options;
    options.model = model;
    options.threads = 2;
    options.pack_folder = folder();
    return load_engine(options);
  }
  LoadedEngine load() const {
    auto engine = load(model_);
    EXPECT_TRUE(engine) << (engine ? "" : engine.error().message);
    return std::move(*engine);
  }
  static std::vector<TokenId> answer(const LoadedEngine& engine) {
    Request request{{TokenId{1}, TokenId{7}, TokenId{9}}, {}};
    request.params.temperature = 0;
    request.params.max_tokens = 12;
    request.params.ignore_eos = true;
    const auto output = engine.engine->run(request);
    EXPECT_TRUE(output) << (output ? "" : output.error().message);
    return output ? output->outputs[0].token_ids : std::vector<TokenId>();
  }
  std::string folder() const { return temp_.file("cache/packs"); }
  std::vector<std::string> packs() const {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder(), none))
      names.push_back(entry.path().string());
    return names;
  }
  void change_model() const {
    fs::last_write_time(model_, fs::last_write_time(model_) + std::chrono::seconds(1));
  }

  testing::TempFolder temp_;
  std::string model_;
};

TEST_F(PackCacheTest, TheSecondStartMapsWhatTheFirstWrote) {
  std::vector<TokenId> expected;
  {
    const LoadedEngine first = load();
    EXPECT_EQ(first.pack, nullptr);
    expected = answer(first);
  }
  ASSERT_EQ(packs().size(), 1u);
  const auto long_ago = fs::last_write_time(packs()[0]) - std::chrono::hours(1);
  fs::last_write_time(packs()[0], long_ago);
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat(packs()[0].c_str(), &before), 0);
  const LoadedEngine second = load();
  EXPECT_NE(second.pack, nullptr);
  EXPECT_EQ(answer(second), expected);
  ASSERT_EQ(::stat(packs()[0].c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino) << "not written again";
  EXPECT_GT(fs::last_write_time(packs()[0]), long_ago) << "but marked as used";
  EXPECT_TRUE(second.notes.empty());
}

TEST_F(PackCacheTest, WithoutAFolderNothingIsKept) {
  EngineOptions options;
  options.model = model_;
  const auto engine = load_engine(options);
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->pack, nullptr);
  EXPECT_EQ(engine->pack_job, nullptr);
}

TEST_F(PackCacheTest, AChangedModelGetsANewPackAndTheOldOneGoes) {
  load();
  const auto first = packs();
  change_model();
  EXPECT_EQ(load().pack, nullptr);
  ASSERT_EQ(packs().size(), 1u);
  EXPECT_NE(packs(), first);
  EXPECT_NE(load().pack, nullptr);
}

TEST_F(PackCacheTest, AnotherModelsPackStays) {
  load();
  const std::string other = temp_.file("other.gguf");
  fs::copy_file(test_data("tiny/qwen2/qwen2-Q4_0.gguf"), other);
  ASSERT_TRUE(load(other));
  EXPECT_EQ(packs().size(), 2u);
}

TEST_F(PackCacheTest, DamagedPacksAreReplaced) {
  load();
  const std::string pack = packs()[0], good = testing::read_file(pack);
  for (const size_t size : {size_t{0}, size_t{30}, good.size() / 2}) {
    fs::resize_file(pack, size);
    EXPECT_EQ(load().pack, nullptr);
    EXPECT_EQ(testing::read_file(pack), good);
  }
}

TEST_F(PackCacheTest, DamagedWeightsEndTheRequestAndTheFile) {
  load();
  const std::string pack = packs()[0];
  std::string bad = testing::read_file(pack);
  bad.back() = static_cast<char>(bad.back() ^ 1);
  std::ofstream(pack, std::ios::binary) << bad;
  LoadedEngine engine = load();
  ASSERT_NE(engine.pack, nullptr) << "the table is good";
  // One token is done long before the comparison, and has to wait for it.
  SamplingParams params;
  params.max_tokens = 1;
  const auto output = engine.engine->run({{TokenId{1}}, params});
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, ErrorCode::corrupt_file);
  EXPECT_NE(output.error().message.find("run the same again"), std::string::npos);
  EXPECT_TRUE(packs().empty());
  const std::vector<TokenId> window = {TokenId{1}, TokenId{2}};
  EXPECT_FALSE(octavo::score(*engine.engine, window));
  load();
  EXPECT_NE(load().pack, nullptr);
}

TEST_F(PackCacheTest, WhatOthersCanWriteIsNotUsedAndSaidSo) {
  load();
  const std::string pack = packs()[0];
  ASSERT_EQ(::chmod(pack.c_str(), 0666), 0);
  {
    const LoadedEngine engine = load();
    EXPECT_EQ(engine.pack, nullptr);
    ASSERT_EQ(engine.notes.size(), 1u);
    EXPECT_NE(engine.notes[0].find(pack + " can be written by others"), std::string::npos);
  }
  ASSERT_EQ(::chmod(pack.c_str(), 0600), 0);
  ASSERT_EQ(::chmod(folder().c_str(), 0777), 0);
  const LoadedEngine engine = load();
  EXPECT_EQ(engine.pack, nullptr);
  ASSERT_EQ(engine.notes.size(), 1u);
  EXPECT_NE(engine.notes[0].find("chmod go-w"), std::string::npos);
}

TEST_F(PackCacheTest, AFolderThatCannotBeIsNoObstacle) {
  temp_.write("cache", "a file where the folder should be");
  const LoadedEngine engine = load();
  EXPECT_EQ(engine.pack, nullptr);
  EXPECT_TRUE(engine.notes.empty());
  EXPECT_FALSE(answer(engine).empty());
}

TEST_F(PackCacheTest, StartsAtTheSameTimeDoNotDisturbEachOther) {
  std::vector<std::vector<TokenId>> answers(4);
  {
    std::vector<std::jthread> starts;
    for (auto& result : answers) starts.emplace_back([this, &result] { result = answer(load()); });
  }
  for (const auto& result : answers) EXPECT_EQ(result, answers[0]);
  EXPECT_EQ(packs().size(), 1u);
  const LoadedEngine last = load();
  ASSERT_NE(last.pack, nullptr);
  EXPECT_TRUE(last.pack->verify({}));
}

TEST_F(PackCacheTest, TheLeastRecentlyUsedGoWhenTheFolderIsFull) {
  load();
  const std::string old = folder() + "/0000000000000001-1.pack";
  const std::string older = folder() + "/0000000000000002-2.pack";
  const std::string killed = folder() + "/.new-1-1", running = folder() + "/.new-2-2";
  const std::string foreign = folder() + "/notes.txt";
  for (const std::string& path : {old, older, killed, running, foreign})
    std::ofstream(path) << std::string(1000, 'x');
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(old, now - std::chrono::hours(24));
  fs::last_write_time(older, now - std::chrono::hours(48));
  fs::last_write_time(killed, now - std::chrono::hours(2));

  const LoadedEngine engine = load();
  const auto file = GgufFile::open(model_);
  const auto cache = PackCache::open(folder(), *file);
  ASSERT_TRUE(cache);
  auto weights = load_weights(*file, engine.config, *engine.pool, {});
  const uint64_t own = fs::file_size(folder() + "/" + cache->name());
  ASSERT_TRUE(cache->store(weights->tensors, own + 1500));
  EXPECT_TRUE(fs::exists(old));
  EXPECT_FALSE(fs::exists(older));
  EXPECT_FALSE(fs::exists(killed));
  EXPECT_TRUE(fs::exists(running));
  EXPECT_TRUE(fs::exists(foreign));
  ASSERT_TRUE(cache->store(weights->tensors, 1));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(folder() + "/" + cache->name())) << "the newest stays, whatever its size";
}

}  // namespace
}  // namespace octavo
