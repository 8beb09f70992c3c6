#include "server/api_embeddings.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

ApiLimits limits(bool matryoshka = false) {
  return {.vocab_size = 200, .max_model_len = 64, .embedding_size = 8, .matryoshka = matryoshka};
}

// <bos> before and <eos> after every text.
Tokenizer tokenizer() {
  TokenizerSpec spec = testing::tiny_byte_spec();
  spec.add_bos = spec.add_eos = true;
  return std::move(*Tokenizer::create(std::move(spec)));
}

std::vector<Request> requests_of(const std::string& body, const PoolingConfig& pooling = {}) {
  auto parsed = parse_embedding_request(body, limits(true));
  EXPECT_TRUE(parsed) << parsed.error().message;
  auto requests = embedding_requests(*parsed, pooling, tokenizer(), 64);
  EXPECT_TRUE(requests) << requests.error().message;
  return std::move(*requests);
}

std::vector<int> ids_of(const Request& request) {
  std::vector<int> ids;
  for (const TokenId id : request.prompt_token_ids) ids.push_back(raw(id));
  return ids;
}

TEST(Embeddings, EveryShapeOfInput) {
  const Tokenizer t = tokenizer();
  const int bos = raw(*t.bos()), eos = raw(*t.eos());
  EXPECT_EQ(ids_of(requests_of(R"({"input":"ab"})")[0]), (std::vector<int>{bos, 'a', 'b', eos}));
  EXPECT_EQ(ids_of(requests_of(R"({"input":"ab","add_special_tokens":false})")[0]),
            (std::vector<int>{'a', 'b'}));
  const auto texts = requests_of(R"({"input":["a","b"]})");
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(ids_of(texts[1]), (std::vector<int>{bos, 'b', eos}));
  EXPECT_EQ(ids_of(requests_of(R"({"input":[7,8,9]})")[0]), (std::vector<int>{7, 8, 9}));
  const auto lists = requests_of(R"({"input":[[7],[8,9]]})");
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(ids_of(lists[1]), (std::vector<int>{8, 9}));
}

TEST(Embeddings, PoolingIsTheModelsUnlessAsked) {
  const PoolingConfig model{.type = PoolingType::cls, .normalize = false};
  const PoolingParams plain = *requests_of(R"({"input":"a"})", model)[0].pooling;
  EXPECT_EQ(plain.type, PoolingType::cls);
  EXPECT_FALSE(plain.normalize);
  EXPECT_EQ(plain.dimensions, 0);
  const PoolingParams asked =
      *requests_of(R"({"input":"a","normalize":true,"dimensions":3})", model)[0].pooling;
  EXPECT_TRUE(asked.normalize);
  EXPECT_EQ(asked.dimensions, 3);
}

// The first tokens of the text stay, and what stands around every text.
TEST(Embeddings, CutOnlyWhenAsked) {
  const Tokenizer t = tokenizer();
  const int bos = raw(*t.bos()), eos = raw(*t.eos());
  const std::string text(100, 'x');
  const auto with = [&](int most, const std::string& input) {
    return ids_of(requests_of(Json{{"input", input}, {"truncate_prompt_tokens", most}}.dump())[0]);
  };
  EXPECT_EQ(ids_of(requests_of(Json{{"input", text}}.dump())[0]).size(), 102u);
  EXPECT_EQ(with(-1, text).size(), 64u);
  EXPECT_EQ(with(4, "abcdef"), (std::vector<int>{bos, 'a', 'b', eos}));
  EXPECT_EQ(with(8, "abcdef"), (std::vector<int>{bos, 'a', 'b', 'c', 'd', 'e', 'f', eos}));
  EXPECT_EQ(with(2, "abcdef"), (std::vector<int>{bos, eos}));
  EXPECT_EQ(with(1, "abcdef"), (std::vector<int>{bos}));
  EXPECT_EQ(with(4, "a<eos>cdef"), (std::vector<int>{bos, 'a', eos, eos}));
  EXPECT_EQ(ids_of(requests_of(R"({"input":[1,2,3],"truncate_prompt_tokens":2})")[0]),
            (std::vector<int>{1, 2}));
}

struct Refused {
  const char* body;
  const char* param;
};

TEST(Embeddings, WhatIsRefusedNamesTheField) {
  const Refused cases[] = {
      {R"({})", "input"},
      {R"({"input":null})", "input"},
      {R"({"input":""})", "input"},
      {R"({"input":[]})", "input"},
      {R"({"input":[[]]})", "input"},
      {R"({"input":["a",""]})", "input"},
      {R"({"input":["a",1]})", "input"},
      {R"({"input":[1,"a"]})", "input"},
      {R"({"input":[200]})", "input"},
      {R"({"input":5})", "input"},
      {R"({"input":"a","encoding_format":"int8"})", "encoding_format"},
      {R"({"input":"a","dimensions":0})", "dimensions"},
      {R"({"input":"a","dimensions":9})", "dimensions"},
      {R"({"input":"a","dimensions":4})", "dimensions"},  // not a model for it
      {R"({"input":"a","truncate_prompt_tokens":0})", "truncate_prompt_tokens"},
      {R"({"input":"a","truncate_prompt_tokens":65})", "truncate_prompt_tokens"},
      {R"({"input":"a","normalize":1})", "normalize"},
      {R"({"input":"a","priority":1})", "priority"},
      {R"({"input":"a","endianness":"big"})", "endianness"},
      {R"({"input":"a","messages":[]})", "messages"},
  };
  for (const Refused& one : cases) {
    const auto parsed = parse_embedding_request(one.body, limits());
    ASSERT_FALSE(parsed) << one.body;
    EXPECT_EQ(parsed.error().status, 400);
    EXPECT_EQ(parsed.error().param, one.param) << one.body << ": " << parsed.error().message;
  }
  EXPECT_TRUE(
      parse_embedding_request(R"({"input":"a","dimensions":8,"user":"u","n":7})", limits()));
  Json many = Json::array();
  for (int i = 0; i <= kMaxEmbeddingInputs; ++i) many.push_back("a");
  EXPECT_FALSE(parse_embedding_request(Json{{"input", many}}.dump(), limits()));
  many.erase(0);
  EXPECT_TRUE(parse_embedding_request(Json{{"input", many}}.dump(), limits()));
}

TEST(Embeddings, TheAnswer) {
  const auto answer = [](const std::string& format) {
    auto parsed = parse_embedding_request(
        R"({"input":[[1],[2,3]],"encoding_format":")" + format + "\"}", limits());
    const Tokenizer t = tokenizer();
    const auto writer =
        make_answer_writer(*parsed, t, {.id = "embd-1", .created = 5, .model = "m"});
    std::vector<RequestOutput> outputs(2);
    outputs[0].prompt_token_ids = {TokenId{1}};
    outputs[0].embedding = {0.1f, -1};
    outputs[1].prompt_token_ids = {TokenId{2}, TokenId{3}};
    outputs[1].embedding = {1e-20f, 2};
    return Json::parse(writer->whole(outputs, {}));
  };
  const Json floats = answer("float");
  EXPECT_EQ(floats["object"], "list");
  EXPECT_EQ(floats["model"], "m");
  EXPECT_EQ(floats["usage"], (Json{{"prompt_tokens", 3}, {"total_tokens", 3}}));
  EXPECT_EQ(floats["data"][0]["object"], "embedding");
  EXPECT_EQ(floats["data"][1]["index"], 1);
  EXPECT_EQ(floats["data"][0]["embedding"].get<std::vector<float>>(), (std::vector{0.1f, -1.0f}));
  EXPECT_EQ(floats["data"][1]["embedding"].get<std::vector<float>>(), (std::vector{1e-20f, 2.0f}));
  EXPECT_EQ(answer("base64")["data"][0]["embedding"], "zczMPQAAgL8=");
}

TEST(Embeddings, Base64OfEveryLength) {
  EXPECT_EQ(floats_base64({}), "");
  EXPECT_EQ(floats_base64(std::vector{1.0f}), "AACAPw==");
  EXPECT_EQ(floats_base64(std::vector{1.0f, 2.0f}), "AACAPwAAAEA=");
  EXPECT_EQ(floats_base64(std::vector{1.0f, 2.0f, 3.0f}), "AACAPwAAAEAAAEBA");
}

}  // namespace
}  // namespace octavo
