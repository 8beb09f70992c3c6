#include "llm/chat_prompt.h"

#include <gtest/gtest.h>

#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

constexpr std::string_view kPlain =
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<eos>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}";
constexpr std::string_view kTrims =
    "{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}<eos>{% endfor %}";
constexpr std::string_view kShouts =
    "{% for m in messages %}[{{ m.role }}]{{ m.content | upper }}{% endfor %}";

LoadedEngine engine_with(std::string_view source) {
  LoadedEngine engine;
  engine.tokenizer = std::make_unique<Tokenizer>(*Tokenizer::create(testing::tiny_byte_spec()));
  engine.chat_template = *ChatTemplate::parse(source);
  return engine;
}

constexpr ChatOptions kContinue = {.add_generation_prompt = false, .continue_final_message = true};

TEST(ChatPrompt, EndsWhereTheAnswerBegins) {
  const LoadedEngine engine = engine_with(kPlain);
  const auto messages = to_json({{"user", "hi"}});
  EXPECT_EQ(render_chat(engine, messages)->text, "<|user|>hi<eos><|assistant|>");
  EXPECT_EQ(render_chat(engine, messages, {.add_generation_prompt = false})->text,
            "<|user|>hi<eos>");
}

TEST(ChatPrompt, ContinuesExactlyAfterTheLastContent) {
  for (const std::string_view source : {kPlain, kTrims}) {
    const LoadedEngine engine = engine_with(source);
    for (const std::string last : {"Sure: ", "", "yes", "\n\n", "  x", "<eos>", "hello"}) {
      const auto prompt =
          render_chat(engine, to_json({{"user", "yes <eos>"}, {"assistant", last}}), kContinue);
      ASSERT_TRUE(prompt) << prompt.error().message;
      EXPECT_TRUE(
          prompt->text.ends_with((source == kPlain ? "<|assistant|>" : "[assistant]") + last))
          << prompt->text;
      // Whatever the user wrote, no control token comes of it (I11).
      EXPECT_EQ(std::count(prompt->ids.begin(), prompt->ids.end(), TokenId{263}), 1);
    }
  }
}

TEST(ChatPrompt, ContinuesPartsToo) {
  auto messages = to_json({{"user", "a"}, {"assistant", ""}});
  messages[1]["content"] = {{{"type", "text"}, {"text", "Sure"}},
                            {{"type", "text"}, {"text", ": "}}};
  const auto prompt = render_chat(engine_with(kPlain), messages, kContinue);
  ASSERT_TRUE(prompt) << prompt.error().message;
  EXPECT_TRUE(prompt->text.ends_with("<|assistant|>Sure: ")) << prompt->text;
  messages[1]["content"] = 3;
  EXPECT_EQ(render_chat(engine_with(kPlain), messages, kContinue).error().message,
            "messages[1].content must be a string or a list of parts");
}

TEST(ChatPrompt, RefusesToContinueWhatTheTemplateChanges) {
  const auto messages = to_json({{"user", "a"}, {"assistant", "b"}});
  const auto refused = render_chat(engine_with(kShouts), messages, kContinue);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(refused.error().message.find("continue_final_message"), std::string::npos);
  const LoadedEngine plain = engine_with(kPlain);
  EXPECT_FALSE(render_chat(plain, messages,
                           {.add_generation_prompt = true, .continue_final_message = true}));
  EXPECT_FALSE(render_chat(plain, to_json({{"user", "a"}}), kContinue));
  EXPECT_FALSE(render_chat(plain, nlohmann::ordered_json::array(), kContinue));
}

// Only what was asked for can contradict.
TEST(ChatPrompt, ContinuesWithoutMore) {
  const auto messages = to_json({{"user", "a"}, {"assistant", "b"}});
  EXPECT_EQ(render_chat(engine_with(kPlain), messages, {.continue_final_message = true})->text,
            "<|user|>a<eos><|assistant|>b");
  const nlohmann::ordered_json nothing = {{{"role", "user"}, {"content", "a"}},
                                          {{"role", "assistant"}, {"content", nullptr}}};
  EXPECT_EQ(render_chat(engine_with(kPlain), nothing, kContinue)->text,
            "<|user|>a<eos><|assistant|>");
}

TEST(ChatPrompt, ATemplateForToolsIsUsedWhereThereAreTools) {
  LoadedEngine engine = engine_with(kPlain);
  engine.tool_template = *ChatTemplate::parse(
      "{{ tools[0].function.name }}: {% for m in messages %}{{ m.content }}{% endfor %}");
  const auto messages = to_json({{"user", "hi"}});
  const auto tools = parse_tools(
      R"([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}])");
  ASSERT_TRUE(tools) << tools.error().message;
  const auto with = render_chat(engine, messages, {}, {.tools = *tools});
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(with->text, "look: hi");
  EXPECT_EQ(render_chat(engine, messages)->text, "<|user|>hi<eos><|assistant|>");
  // One that was given takes the place of both.
  engine.config.vocab_size = static_cast<int>(engine.tokenizer->vocab_size());
  ASSERT_TRUE(
      use_chat_template(engine, *ChatTemplate::parse("{{ messages[0].content }} {{ tools }}")));
  EXPECT_TRUE(render_chat(engine, messages, {}, {.tools = *tools})->text.starts_with("hi "));
}

TEST(ChatPrompt, SaysWhyThereIsNone) {
  LoadedEngine engine;
  engine.tokenizer =
      std::make_unique<Tokenizer>(Tokenizer::create(testing::tiny_byte_spec()).value());
  EXPECT_EQ(render_chat(engine, {}).error().code, ErrorCode::unsupported);
  engine.chat_template_error = Error{ErrorCode::template_error, "broken"};
  EXPECT_EQ(render_chat(engine, {}).error().message, "broken");
}

}  // namespace
}  // namespace octavo
