#include "cli/json_output.h"

#include <gtest/gtest.h>

#include "cli/model_loading.h"
#include "support/paths.h"

namespace octavo::cli {
namespace {

Tokenizer tiny_tokenizer() {
  const auto file = open_model_file(testing::test_data("tiny/qwen2/qwen2-F32.gguf"));
  return load_tokenizer(**file).value();
}

TokenLogprobs position(int32_t chosen) {
  return {TokenId{chosen}, {{TokenId{chosen}, -0.5f, 1}, {TokenId{300}, -2.25f, 2}}};
}

RequestOutput some_output() {
  RequestOutput output;
  output.prompt_token_ids = {TokenId{5}, TokenId{6}};
  output.prompt_logprobs = {std::nullopt, position(6)};
  output.seed = 9007199254740991;
  CompletionOutput choice;
  choice.text = "ab";
  choice.token_ids = {TokenId{7}, TokenId{8}};
  choice.logprobs = {position(7), position(8)};
  choice.finish_reason = FinishReason::stop;
  choice.stop_reason = std::string("END");
  output.outputs.push_back(choice);
  choice.index = 1;
  choice.stop_reason = TokenId{8};
  output.outputs.push_back(choice);
  choice.index = 2;
  choice.finish_reason = FinishReason::length;
  choice.stop_reason = {};
  output.outputs.push_back(choice);
  return output;
}

TEST(JsonOutput, HasTheNamedFields) {
  const Tokenizer tokenizer = tiny_tokenizer();
  const Json json = request_json(some_output(), {"hi", true, true}, tokenizer);
  EXPECT_EQ(json["prompt"], "hi");
  EXPECT_EQ(json["prompt_token_ids"], Json::parse("[5, 6]"));
  ASSERT_EQ(json["prompt_logprobs"].size(), 2u);
  EXPECT_TRUE(json["prompt_logprobs"][0].is_null());
  EXPECT_EQ(json["prompt_logprobs"][1]["6"]["rank"], 1);
  ASSERT_EQ(json["outputs"].size(), 3u);
  const Json& choice = json["outputs"][0];
  EXPECT_EQ(choice["index"], 0);
  EXPECT_EQ(choice["text"], "ab");
  EXPECT_EQ(choice["token_ids"], Json::parse("[7, 8]"));
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["stop_reason"], "END");
  EXPECT_EQ(json["outputs"][1]["stop_reason"], 8);
  EXPECT_EQ(json["outputs"][2]["finish_reason"], "length");
  EXPECT_TRUE(json["outputs"][2]["stop_reason"].is_null());
  EXPECT_EQ(json["seed"], 9007199254740991);
  EXPECT_EQ(json["usage"],
            Json::parse(R"({"prompt_tokens": 2, "completion_tokens": 6, "total_tokens": 8})"));
}

TEST(JsonOutput, GuessesWhereTokensMayBeGuessed) {
  RequestOutput output = some_output();
  EXPECT_FALSE(request_json(output, {}, tiny_tokenizer())["metrics"].contains("num_draft_tokens"));
  output.metrics.speculates = true;
  output.metrics.num_draft_tokens = 5;
  output.metrics.num_accepted_tokens = 2;
  const Json json = request_json(output, {}, tiny_tokenizer());
  EXPECT_EQ(json["metrics"]["num_draft_tokens"], 5);
  EXPECT_EQ(json["metrics"]["num_accepted_tokens"], 2);
}

TEST(JsonOutput, LogprobsAreAnObjectPerPosition) {
  const Tokenizer tokenizer = tiny_tokenizer();
  const Json json = request_json(some_output(), {"hi", true, true}, tokenizer);
  const Json& places = json["outputs"][0]["logprobs"];
  ASSERT_EQ(places.size(), 2u);
  const Json& entry = places[0]["300"];
  EXPECT_EQ(entry["logprob"], -2.25);
  EXPECT_EQ(entry["rank"], 2);
  EXPECT_EQ(entry["decoded_token"], tokenizer.decode(std::vector{TokenId{300}}, false));
}

TEST(JsonOutput, WhatWasNotAskedForIsNull) {
  const Json json = request_json(some_output(), {std::nullopt, false, false}, tiny_tokenizer());
  EXPECT_TRUE(json["prompt"].is_null());
  EXPECT_TRUE(json["prompt_logprobs"].is_null());
  EXPECT_TRUE(json["outputs"][0]["logprobs"].is_null());
}

TEST(JsonOutput, EveryTokenOfAVocabularyIsValidText) {
  const Tokenizer tokenizer = tiny_tokenizer();
  TokenLogprobs all{TokenId{0}, {}};
  for (int32_t id = 0; static_cast<size_t>(id) < tokenizer.vocab_size(); ++id)
    all.entries.push_back({TokenId{id}, -1, id + 1});
  const Json json = logprobs_json(all, tokenizer);
  ASSERT_EQ(json.size(), tokenizer.vocab_size());
  // A strict dump throws on bytes that are not UTF-8.
  EXPECT_EQ(Json::parse(json.dump()).size(), tokenizer.vocab_size());
}

TEST(JsonOutput, LinesAreUtf8WhateverComes) {
  EXPECT_EQ(dump_line(Json{{"a", "\xFF"}}), "{\"a\":\"\xEF\xBF\xBD\"}\n");
}

}  // namespace
}  // namespace octavo::cli
