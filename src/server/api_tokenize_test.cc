#include "server/api_tokenize.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

class ApiTokenize : public ::testing::Test {
 protected:
  std::string answer(std::string_view body) {
    const auto request = parse_tokenize_request(
        body, {.vocab_size = static_cast<int>(tokenizer_.vocab_size()), .max_model_len = 64});
    if (!request) return to_json(request.error());
    const auto ids = tokenize_text(*request, tokenizer_);
    if (!ids) return to_json(ids.error());
    return tokenize_answer(*request, *ids, tokenizer_, 64);
  }
  Tokenizer tokenizer_ = std::move(*Tokenizer::create(testing::tiny_byte_spec()));
};

TEST_F(ApiTokenize, BothShapes) {
  EXPECT_EQ(answer(R"({"prompt":"hello w"})"),
            R"({"count":2,"max_model_len":64,"tokens":[259,260],"token_strs":null})");
  EXPECT_EQ(answer(R"({"prompt":"hello w","return_token_strs":true})"),
            R"({"count":2,"max_model_len":64,"tokens":[259,260],"token_strs":["hello"," w"]})");
  EXPECT_EQ(answer(R"({"content":"hello w"})"), R"({"tokens":[259,260]})");
  EXPECT_EQ(answer(R"({"content":"helloé","with_pieces":true})"),
            R"({"tokens":[{"id":259,"piece":"hello"},{"id":195,"piece":[195]},)"
            R"({"id":169,"piece":[169]}]})");
  EXPECT_EQ(answer(R"({"prompt":""})"),
            R"({"count":0,"max_model_len":64,"tokens":[],"token_strs":null})");
}

TEST_F(ApiTokenize, ControlTokensAreTextIfAskedFor) {
  EXPECT_EQ(answer(R"({"content":"<eos>"})"), R"({"tokens":[263]})");
  EXPECT_EQ(answer(R"({"content":"<eos>","parse_special":false})"),
            R"({"tokens":[60,101,111,115,62]})");
}

TEST_F(ApiTokenize, DetokenizeAnswersBothNames) {
  EXPECT_EQ(detokenize_answer({.tokens = {TokenId{259}, TokenId{263}, TokenId{0x80}}}, tokenizer_),
            "{\"prompt\":\"hello<eos>\uFFFD\",\"content\":\"hello<eos>\uFFFD\"}");
}

TEST_F(ApiTokenize, Info) {
  const Json info = Json::parse(tokenizer_info_answer(tokenizer_, 64, "{{ x }}"));
  EXPECT_EQ(info["eos_token"], "<eos>");
  EXPECT_EQ(info["eos_token_id"], 263);
  EXPECT_EQ(info["bos_token"], "<bos>");
  EXPECT_TRUE(info["pad_token"].is_null());
  EXPECT_EQ(info["chat_template"], "{{ x }}");
  EXPECT_EQ(info["vocab_size"], 265);
  EXPECT_EQ(info["model_max_length"], 64);
}

}  // namespace
}  // namespace octavo
