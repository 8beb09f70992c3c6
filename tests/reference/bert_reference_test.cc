// A BERT-style encoder against Hugging Face Transformers in fp32, through the engine: embeddings of
// a tiny model by every kind of pooling, alone and in company.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/engine.h"
#include "model/pooling_config.h"
#include "support/paths.h"
#include "support/test_model.h"
#include "support/tiny_bert.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using namespace testing;
using nlohmann::json;
using Vector = std::vector<float>;

json reference() { return json::parse(read_file(test_data("tiny/bert/reference.json"))); }

class Rig {
 public:
  explicit Rig(TestModelOptions options = {.kv_cache_dtype = KvType::f32}, int max_num_seqs = 64)
      : tokenizer_(std::move(*Tokenizer::create(tiny_byte_spec()))) {
    write_tiny_bert(folder_, reference()["config"]);
    options.contexts = 8;
    model_ = std::make_unique<TestModel>(folder_.file(""), options);
    SchedulerOptions scheduler;
    scheduler.max_num_batched_tokens = options.chunk;
    scheduler.max_num_seqs = max_num_seqs;
    auto core = EngineCore::create(model_->transformer(), tokenizer_, {.scheduler = scheduler});
    EXPECT_TRUE(core) << (core ? "" : core.error().message);
    core_ = std::move(*core);
  }

  std::vector<Vector> embed(const std::vector<std::vector<TokenId>>& prompts,
                            PoolingParams pooling) {
    std::vector<Vector> out(prompts.size());
    for (size_t i = 0; i < prompts.size(); ++i)
      core_->add(RequestId{static_cast<int64_t>(i)},
                 {.prompt_token_ids = prompts[i], .pooling = pooling},
                 {.on_delta = {},
                  .on_prefill = {},
                  .on_prompt_done = {},
                  .on_finish =
                      [&out, i](RequestOutput output) {
                        EXPECT_FALSE(output.error) << output.error->message;
                        out[i] = std::move(output.embedding);
                      }},
                 0);
    for (num_steps = 0; core_->step(); ++num_steps) EXPECT_TRUE(core_->scheduler().check());
    EXPECT_EQ(core_->scheduler().pool().num_held(), 0);
    return out;
  }

  EngineCore& core() { return *core_; }
  int num_steps = 0;

 private:
  TempFolder folder_;
  Tokenizer tokenizer_;
  std::unique_ptr<TestModel> model_;
  std::unique_ptr<EngineCore> core_;
};

std::vector<std::vector<TokenId>> prompts_of(const json& cases) {
  std::vector<std::vector<TokenId>> prompts;
  for (const json& one : cases) prompts.push_back(token_ids(one["ids"]));
  return prompts;
}

double cosine(const Vector& a, const Vector& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += double{a[i]} * double{b[i]};
    aa += double{a[i]} * double{a[i]};
    bb += double{b[i]} * double{b[i]};
  }
  return ab / std::sqrt(aa * bb);
}

constexpr std::pair<PoolingType, const char*> kKinds[] = {
    {PoolingType::cls, "first"}, {PoolingType::mean, "mean"}, {PoolingType::last, "last"}};

TEST(BertReference, EveryPoolingOfEveryLength) {
  const json cases = reference()["cases"];
  ASSERT_GE(cases.size(), 15u);
  Rig rig;
  for (const auto& [type, key] : kKinds) {
    const auto actual = rig.embed(prompts_of(cases), {.type = type, .normalize = false});
    for (size_t i = 0; i < cases.size(); ++i) {
      const Vector expected = cases[i][key];
      ASSERT_EQ(actual[i].size(), expected.size());
      for (size_t k = 0; k < expected.size(); ++k)
        ASSERT_NEAR(actual[i][k], expected[k], 1e-4) << key << " of case " << i << " at " << k;
    }
  }
}

TEST(BertReference, RoundedWeightsStayClose) {
  const json cases = reference()["cases"];
  Rig rig({.matrices = DType::q8_0, .kv_cache_dtype = KvType::f16});
  const auto actual = rig.embed(prompts_of(cases), {.type = PoolingType::mean});
  for (size_t i = 0; i < cases.size(); ++i)
    EXPECT_GT(cosine(actual[i], cases[i]["mean"]), 0.999) << i;
}

// Whoever else is in the step, however many threads and tokens of a block: the same bits.
TEST(BertReference, CompanyChangesNoBit) {
  const auto prompts = prompts_of(reference()["cases"]);
  for (const std::optional<DType> matrices : {std::optional<DType>(), std::optional(DType::q8_0)}) {
    std::vector<Vector> alone;
    Rig one({.matrices = matrices, .kv_cache_dtype = KvType::f32, .threads = 1}, 1);
    for (const auto& prompt : prompts) alone.push_back(one.embed({prompt}, {PoolingType::mean})[0]);
    for (const int threads : {1, 2, 3})
      for (const int block_size : {16, 64})
        for (const int chunk : {300, 512, 2000}) {
          Rig rig({.matrices = matrices,
                   .kv_cache_dtype = KvType::f32,
                   .threads = threads,
                   .block_size = block_size,
                   .chunk = chunk});
          EXPECT_EQ(rig.embed(prompts, {PoolingType::mean}), alone)
              << threads << " threads, blocks of " << block_size << ", steps of " << chunk;
          EXPECT_EQ(rig.num_steps > 1, chunk < 1500);  // whole prompts, as many as a step holds
        }
  }
}

TEST(BertReference, WritesNoText) {
  Rig rig;
  const auto checked = rig.core().check({.prompt_token_ids = {TokenId{5}}});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::unsupported);
  EXPECT_NE(checked.error().message.find("encoder"), std::string::npos);
}

TEST(BertReference, AStepMustHoldAWholeSequence) {
  TempFolder folder;
  write_tiny_bert(folder, reference()["config"]);
  TestModel model(folder.file(""), {.chunk = 128});
  const Tokenizer tokenizer = std::move(*Tokenizer::create(tiny_byte_spec()));
  SchedulerOptions scheduler;
  scheduler.max_num_batched_tokens = 128;
  scheduler.max_num_seqs = 8;
  const auto core = EngineCore::create(model.transformer(), tokenizer, {.scheduler = scheduler});
  ASSERT_FALSE(core);
  EXPECT_NE(core.error().message.find("max_num_batched_tokens (128)"), std::string::npos);
  scheduler.max_model_len = 128;
  EXPECT_TRUE(EngineCore::create(model.transformer(), tokenizer, {.scheduler = scheduler}));
}

// What sentence-transformers writes beside the model decides how embeddings are made.
TEST(BertReference, PoolingOfTheFolder) {
  TempFolder folder;
  write_tiny_bert(folder, reference()["config"]);
  const auto read = [&]() -> Result<PoolingConfig> {
    OCTAVO_TRY(const auto source, open_model(folder.file(""), {}));
    OCTAVO_TRY(const ModelConfig config, read_model_config(*source));
    return read_pooling_config(*source, config);
  };
  EXPECT_EQ(read()->type, PoolingType::mean);  // nothing said
  EXPECT_TRUE(read()->normalize);
  std::filesystem::create_directory(folder.file("1_Pooling"));
  const auto modules = [&](const char* more) {
    folder.write("modules.json",
                 fmt::format(R"([{{"type":"sentence_transformers.models.Transformer","path":""}},
        {{"type":"sentence_transformers.models.Pooling","path":"1_Pooling"}}{}])",
                             more));
  };
  modules("");
  folder.write("1_Pooling/config.json", R"({"pooling_mode_cls_token":true})");
  EXPECT_EQ(read()->type, PoolingType::cls);
  EXPECT_FALSE(read()->normalize);
  modules(R"(,{"type":"sentence_transformers.models.Normalize","path":"2"})");
  folder.write("1_Pooling/config.json", R"({"pooling_mode":"lasttoken"})");
  EXPECT_EQ(read()->type, PoolingType::last);
  EXPECT_TRUE(read()->normalize);
  for (const char* wrong : {R"({"pooling_mode_max_tokens":true})", R"({"pooling_mode":"other"})",
                            R"({})", R"({"pooling_mode_cls_token":1})",
                            R"({"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":true})"}) {
    folder.write("1_Pooling/config.json", wrong);
    EXPECT_FALSE(read()) << wrong;
  }
  folder.write("1_Pooling/config.json", R"({"pooling_mode":"mean"})");
  EXPECT_TRUE(read());
  modules(R"(,{"type":"sentence_transformers.models.Dense","path":"2"})");
  EXPECT_FALSE(read());
  for (const char* wrong : {"{}", "[1]", "", "[", R"([{"type":"x.Pooling","path":"../../etc"}])",
                            R"([{"type":"x.Pooling","path":""}])", R"([{"type":5}])"}) {
    folder.write("modules.json", wrong);
    EXPECT_FALSE(read()) << wrong;
  }
}

TEST(BertReference, WhatIsNotKnownIsRefused) {
  for (const auto& [field, value] : {std::pair<const char*, json>{"hidden_act", "relu"},
                                     {"is_decoder", true},
                                     {"position_embedding_type", "relative_key"},
                                     {"some_new_field", 1},
                                     {"layer_norm_eps", "x"},
                                     {"intermediate_size", nullptr},
                                     {"max_position_embeddings", nullptr}}) {
    TempFolder folder;
    json config = reference()["config"];
    write_tiny_bert(folder, config);
    config[field] = value;
    folder.write("config.json", config.dump());
    const auto source = open_model(folder.file(""), {});
    ASSERT_FALSE(source) << field;
    EXPECT_NE(source.error().message.find(field), std::string::npos) << source.error().message;
  }
}

}  // namespace
}  // namespace octavo
