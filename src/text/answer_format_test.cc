#include "text/answer_format.h"

#include <gtest/gtest.h>

#include "support/paths.h"
#include "text/chat_template.h"

namespace octavo {
namespace {

std::string source_of(const std::string& name) {
  return testing::read_file(testing::test_data("chat_corpus/templates/" + name + ".jinja"));
}

TEST(AnswerFormat, TemplatesShowTheirFormats) {
  struct Case {
    const char *name, *reasoning, *tools;
  };
  const Case cases[] = {
      {"qwen3_thinking", "qwen3", "hermes"},
      {"qwen25_tools", "none", "hermes"},
      {"hermes_tools", "none", "hermes"},
      {"smollm3", "qwen3", "hermes"},
      {"qwen3_coder", "none", "none"},
      {"llama31_tools", "none", "llama3_json"},
      {"mistral_v3_tools", "none", "mistral"},
      {"mistral_tekken", "none", "mistral"},
      {"deepseek_r1", "deepseek_r1", "none"},
      {"deepseek_v3", "none", "none"},
      {"smollm2", "none", "none"},
      {"gemma3", "none", "none"},
      {"phi4_tools", "none", "none"},
      {"nemotron_llama", "qwen3", "none"},
  };
  for (const Case& item : cases) {
    const std::string source = source_of(item.name);
    ASSERT_FALSE(source.empty()) << item.name;
    const auto reasoning = find_reasoning_format("auto", source);
    const auto tools = find_tool_format("auto", source);
    ASSERT_TRUE(reasoning && tools);
    EXPECT_EQ(*reasoning ? (*reasoning)->name : "none", item.reasoning) << item.name;
    EXPECT_EQ(*tools ? (*tools)->name : "none", item.tools) << item.name;
  }
}

TEST(AnswerFormat, NamesAreKnownOrRefused) {
  for (const ReasoningFormat& format : reasoning_formats())
    EXPECT_EQ(*find_reasoning_format(format.name, ""), &format);
  for (const ToolFormat& format : tool_formats())
    EXPECT_EQ(*find_tool_format(format.name, ""), &format);
  EXPECT_EQ(*find_tool_format("none", "<tool_call>"), nullptr);
  EXPECT_EQ(*find_tool_format("auto", ""), nullptr);
  const auto wrong = find_reasoning_format("qwen4", "</think>");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(wrong.error().message.find("'qwen4'; known are auto, none, deepseek_r1, qwen3"),
            std::string::npos)
      << wrong.error().message;
}

TEST(AnswerFormat, ThePromptTellsWhetherTheBlockIsOpen) {
  const ReasoningFormat& qwen = **find_reasoning_format("qwen3", "");
  const ReasoningFormat& deepseek = **find_reasoning_format("deepseek_r1", "");
  struct Case {
    const char* end;
    bool is_template, qwen, deepseek;
  };
  const Case cases[] = {
      {"<|im_end|>\n<|im_start|>assistant\n", true, false, true},
      {"<|im_start|>assistant\n<think>\n", true, true, true},
      {"<|im_start|>assistant\n<think>\n\n</think>\n\n", true, false, false},
      {"<｜Assistant｜></think>", true, false, false},
      {"", true, false, true},
      // A message that is to be continued.
      {"The answer is", false, false, false},
      {"<think>So far", false, true, true},
      {"<think>a</think>b", false, false, false},
  };
  for (const Case& item : cases) {
    const TextSpan end{item.end, item.is_template};
    EXPECT_EQ(begins_in_reasoning(qwen, end), item.qwen) << item.end;
    EXPECT_EQ(begins_in_reasoning(deepseek, end), item.deepseek) << item.end;
  }
}

TEST(AnswerFormat, TemplatesThatTakeTools) {
  struct Case {
    const char* name;
    bool tools, calls, argument_text;
  };
  const Case cases[] = {
      {"qwen3_thinking", true, true, false},   {"qwen25_tools", true, true, false},
      {"hermes_tools", true, true, false},     {"llama31_tools", true, true, false},
      {"mistral_v3_tools", true, true, false}, {"mistral_tekken", true, true, false},
      {"qwen3_coder", true, true, false},      {"deepseek_v3", true, true, false},
      {"smollm2", false, false, false},        {"gemma3", false, false, false},
      {"chatml", false, false, false},         {"smollm3", true, false, false},
  };
  for (const Case& item : cases) {
    const auto chat = ChatTemplate::parse(source_of(item.name));
    ASSERT_TRUE(chat) << item.name;
    EXPECT_EQ(chat->traits().shows_tools, item.tools) << item.name;
    EXPECT_EQ(chat->traits().shows_tool_calls, item.calls) << item.name;
    EXPECT_EQ(chat->traits().wants_argument_text, item.argument_text) << item.name;
  }
  const auto text = ChatTemplate::parse(
      "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c['function']['name'] + '\n' + "
      "c['function']['arguments'] }}{% endfor %}{% endfor %}");
  const auto printed = ChatTemplate::parse(
      "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments }}"
      "{% endfor %}{% endfor %}");
  EXPECT_TRUE(text->traits().wants_argument_text);
  EXPECT_TRUE(printed->traits().wants_argument_text);
}

}  // namespace
}  // namespace octavo
