#include "text/end_tokens.h"

#include <gtest/gtest.h>

#include "support/tiny_tokenizer.h"
#include "text/template_probe.h"
#include "text/tokenizer.h"

namespace octavo {
namespace {

using testing::add_token;
using testing::tiny_byte_spec;

// The ends with their reasons: "<eos>:eos".
std::string ends_of(const Tokenizer& tokenizer) {
  constexpr const char* kReasons[] = {"eos", "eot", "listed", "usual", "template"};
  std::string out;
  for (const EndToken& end : tokenizer.ends())
    out += (out.empty() ? "" : " ") + tokenizer.piece(end.id) + ":" +
           kReasons[static_cast<int>(end.reason)];
  return out;
}

TokenizerSpec spec_with(const std::vector<std::string>& control_tokens) {
  TokenizerSpec spec = tiny_byte_spec();
  for (const std::string& token : control_tokens) add_token(spec, token, TokenType::control);
  spec.scores.clear();
  return spec;
}

TEST(EndTokens, UsualNamesEndAnswersIfTheyAreControlTokens) {
  TokenizerSpec spec = spec_with({"<|im_end|>", "<|im_start|>", "<|eot_id|>"});
  add_token(spec, "</s>", TokenType::normal);
  add_token(spec, "<|end|>", TokenType::user_defined);
  spec.scores.clear();
  const Tokenizer tokenizer = *Tokenizer::create(std::move(spec));
  EXPECT_EQ(ends_of(tokenizer), "<eos>:eos <|im_end|>:usual <|eot_id|>:usual");
  EXPECT_TRUE(tokenizer.is_eog(*tokenizer.find_control("<|im_end|>")));
  EXPECT_FALSE(tokenizer.is_eog(*tokenizer.find_control("<|im_start|>")));
  EXPECT_EQ(tokenizer.eog().size(), 3u);
}

TEST(EndTokens, WhatTheFilesSayComesFirst) {
  TokenizerSpec spec = spec_with({"<|im_end|>", "<|eom_id|>", "<stop>"});
  const auto id = [&](int back) {
    return TokenId{static_cast<int32_t>(spec.tokens.size()) - back};
  };
  spec.eot = id(3);
  spec.extra_eog = {id(1), *spec.eos};
  EXPECT_EQ(ends_of(*Tokenizer::create(std::move(spec))),
            "<eos>:eos <|im_end|>:eot <|eom_id|>:usual <stop>:listed");
}

constexpr const char* kChatMl =
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|stop|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}";

std::optional<std::string> turn_end(const char* source) {
  const Tokenizer tokenizer = *Tokenizer::create(spec_with({"<|start|>", "<|stop|>"}));
  const auto chat_template = ChatTemplate::parse(source);
  EXPECT_TRUE(chat_template) << chat_template.error().message;
  const auto end = probe_template(*chat_template, tokenizer).turn_end;
  return end ? std::optional(tokenizer.piece(*end)) : std::nullopt;
}

TEST(TemplateProbe, FindsWhatEndsTheAssistantsTurn) {
  EXPECT_EQ(turn_end(kChatMl), "<|stop|>");
  // White space comes between; parts of content; the beginning of the next turn ends one.
  EXPECT_EQ(turn_end("{% for m in messages %}{{ m.content }} \n<eos>{% endfor %}"), "<eos>");
  EXPECT_EQ(turn_end("{% for m in messages %}{{ m.content[0].text }}<|stop|>{% endfor %}"),
            "<|stop|>");
  EXPECT_EQ(turn_end("{% for m in messages %}<|start|>{{ m.role }} {{ m.content }}{% endfor %}"),
            "<|start|>");
  EXPECT_EQ(turn_end("{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"), "<eos>");
}

TEST(TemplateProbe, IsEmptyWhereNothingCanBeFound) {
  EXPECT_EQ(turn_end("{% for m in messages %}{{ m.content }}\nuser: {% endfor %}"), std::nullopt);
  EXPECT_EQ(turn_end("{{ messages[0].content }}<|stop|>"), std::nullopt);
  EXPECT_EQ(turn_end("{{ raise_exception('never') }}"), std::nullopt);
  EXPECT_EQ(turn_end("{% for m in messages %}{{ m.content | upper }}<|stop|>{% endfor %}"),
            std::nullopt);
}

TEST(TemplateProbe, ListsTheControlTokensThatAreWritten) {
  const Tokenizer tokenizer = *Tokenizer::create(spec_with({"<|start|>", "<|stop|>", "<|no|>"}));
  const auto probe = probe_template(*ChatTemplate::parse(kChatMl), tokenizer);
  EXPECT_EQ(probe.control_tokens.size(), 7u);
  for (const TokenId id : probe.control_tokens) EXPECT_NE(tokenizer.piece(id), "<|no|>");
}

TEST(EndTokens, ComeAndGo) {
  Tokenizer tokenizer = *Tokenizer::create(spec_with({"<|start|>", "<|stop|>", "<|im_end|>"}));
  const TokenId stop = *tokenizer.find_control("<|stop|>");
  tokenizer.end_answers_with(stop, EndReason::chat_template);
  tokenizer.end_answers_with(stop, EndReason::listed);
  tokenizer.end_answers_with(*tokenizer.eos(), EndReason::chat_template);
  EXPECT_EQ(ends_of(tokenizer), "<eos>:eos <|stop|>:template <|im_end|>:usual");
  EXPECT_TRUE(tokenizer.is_eog(stop));
  tokenizer.forget_ends_from(TokenId{raw(stop) + 1});
  EXPECT_EQ(ends_of(tokenizer), "<eos>:eos <|stop|>:template");
  EXPECT_EQ(tokenizer.eog().size(), 2u);
}

}  // namespace
}  // namespace octavo
