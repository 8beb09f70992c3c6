#include "engine/check_tokens.h"

#include <gtest/gtest.h>

#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using testing::add_token;

// <bos> 262, <eos> 263, <think> 264, then `last`.
Tokenizer tokenizer_with(const std::string& last, TokenType type, bool add_bos = false) {
  TokenizerSpec spec = testing::tiny_byte_spec();
  add_token(spec, last, type);
  spec.scores.clear();
  spec.add_bos = add_bos;
  return *Tokenizer::create(std::move(spec));
}

std::string refusal(const Tokenizer& tokenizer, int rows, const char* source = nullptr) {
  const auto chat_template =
      source ? std::optional(*ChatTemplate::parse(source)) : std::optional<ChatTemplate>();
  const auto checked =
      check_tokens("m.gguf", tokenizer, rows, chat_template ? &*chat_template : nullptr);
  EXPECT_TRUE(checked || checked.error().code == ErrorCode::corrupt_file);
  return checked ? "" : checked.error().message;
}

TEST(CheckTokens, WhatFitsIsNotSpokenOf) {
  const auto checked = check_tokens("m.gguf", tokenizer_with("x", TokenType::normal), 266, nullptr);
  ASSERT_TRUE(checked);
  EXPECT_EQ(*checked, "");
}

TEST(CheckTokens, TokensThatAreNeededMustHaveARow) {
  EXPECT_EQ(refusal(tokenizer_with("x", TokenType::normal), 265),
            "m.gguf: token 265 ('x') may come of text, but the model's embedding has 265 rows; "
            "tokenizer and weights are not of one model");
  EXPECT_NE(
      refusal(tokenizer_with("x", TokenType::control), 263).find("263 ('<eos>') ends an answer"),
      std::string::npos);
  EXPECT_NE(refusal(tokenizer_with("x", TokenType::control, true), 262)
                .find("262 ('<bos>') begins each text"),
            std::string::npos);
  EXPECT_NE(refusal(tokenizer_with("<|turn|>", TokenType::control), 265,
                    "{% for m in messages %}<|turn|>{{ m.content }}{% endfor %}")
                .find("265 ('<|turn|>') is written by the chat template"),
            std::string::npos);
}

TEST(CheckTokens, ControlTokensThatNothingNeedsAreNoted) {
  const auto chat_template =
      ChatTemplate::parse("{% for m in messages %}{{ m.content }}{% endfor %}");
  for (const char* token : {"<image>", "<|im_end|>"}) {
    const auto checked =
        check_tokens("m.gguf", tokenizer_with(token, TokenType::control), 265, &*chat_template);
    ASSERT_TRUE(checked) << checked.error().message;
    EXPECT_NE(checked->find("1 of the tokenizer's control tokens"), std::string::npos) << *checked;
  }
  const auto unused = check_tokens("m.gguf", tokenizer_with("x", TokenType::unused), 265, nullptr);
  ASSERT_TRUE(unused) << unused.error().message;
  EXPECT_EQ(*unused, "");
}

}  // namespace
}  // namespace octavo
