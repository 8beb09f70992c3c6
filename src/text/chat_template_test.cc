// Templates against jinja2: snippets made by tools/make_template_data.py, and the reference
// conversations.
#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/paths.h"
#include "text/chat_input.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kNow = 1700000000;  // of tools/make_template_data.py

std::string joined(const std::vector<TextSpan>& spans) {
  std::string text;
  for (const TextSpan& span : spans) text += span.text;
  return text;
}

std::vector<Json> json_lines(const std::string& name) {
  std::istringstream in(testing::read_file(testing::test_data(name)));
  std::vector<Json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

ChatTemplate::Input input_of(Json variables) {
  ChatTemplate::Input input;
  input.now_s = kNow;
  input.messages = Json::array();
  input.extra = Json::object();
  for (auto& [name, value] : variables.items()) {
    if (name == "messages")
      input.messages = value;
    else if (name == "tools")
      input.tools = value;
    else if (name == "add_generation_prompt")
      input.add_generation_prompt = value;
    else if (name == "bos_token")
      input.bos_token = value;
    else if (name == "eos_token")
      input.eos_token = value;
    else
      input.extra[name] = value;
  }
  return input;
}

Result<std::string> render(const std::string& source, const ChatTemplate::Input& input) {
  OCTAVO_TRY(const ChatTemplate chat, ChatTemplate::parse(source));
  OCTAVO_TRY(const auto spans, chat.render(input));
  return joined(spans);
}

TEST(ChatTemplate, RendersAsJinja2) {
  const auto lines = json_lines("chat_templates/snippets.jsonl");
  ASSERT_GT(lines.size(), 150u);
  for (const Json& line : lines) {
    const auto text = render(line["template"], input_of(line["input"]));
    const std::string name = line["name"];
    if (line.contains("error"))
      EXPECT_FALSE(text) << name << ": rendered as " << *text;
    else if (!text)
      ADD_FAILURE() << name << ": " << text.error().message;
    else
      EXPECT_EQ(*text, line["text"].get<std::string>()) << name;
  }
}

struct Model {
  const char* name;
  const char* bos;
  const char* eos;
};

class ReferenceChats : public ::testing::TestWithParam<Model> {};

TEST_P(ReferenceChats, RenderExactly) {
  const Model model = GetParam();
  const std::string source = testing::read_file(
      testing::test_data(std::string("chat_templates/") + model.name + ".chat_template.jinja"));
  const auto chat = ChatTemplate::parse(source);
  ASSERT_TRUE(chat) << chat.error().message;
  const auto lines = json_lines(std::string("chat/") + model.name + ".jsonl");
  ASSERT_GT(lines.size(), 30u);
  for (const Json& line : lines) {
    ChatTemplate::Input input;
    input.messages = line["messages"];
    input.add_generation_prompt = line["add_generation_prompt"];
    if (line.contains("tools")) input.tools = line["tools"];
    input.bos_token = model.bos;
    input.eos_token = model.eos;
    const auto spans = chat->render(input);
    if (line.contains("error")) {
      ASSERT_FALSE(spans) << line["name"];
      EXPECT_EQ(spans.error().code, ErrorCode::template_error);
    } else {
      ASSERT_TRUE(spans) << line["name"] << spans.error().message;
      EXPECT_EQ(joined(*spans), line["text"].get<std::string>()) << line["name"];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceChats,
                         ::testing::Values(Model{"smollm2", "<|im_start|>", "<|im_end|>"},
                                           Model{"qwen2", "<｜begin▁of▁sentence｜>",
                                                 "<｜end▁of▁sentence｜>"},
                                           Model{"gemma3", "<bos>", "<eos>"}),
                         [](const auto& case_info) { return std::string(case_info.param.name); });

TEST(ChatTemplate, LongConversationsFitTheLimits) {
  constexpr int kTurns = 10'000;
  for (const char* name : {"smollm2", "qwen2", "gemma3"}) {
    const auto path =
        testing::test_data(std::string("chat_templates/") + name + ".chat_template.jinja");
    ChatTemplate::Input input;
    for (int i = 0; i < kTurns; ++i)
      input.messages.push_back(
          {{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(300, 'x')}});
    const auto text = render(testing::read_file(path), input);
    ASSERT_TRUE(text) << name << ": " << text.error().message;
    EXPECT_GT(text->size(), 300u * kTurns) << name;
  }
}

TEST(ChatTemplate, RendersOnManyThreadsAtOnce) {
  const auto chat = ChatTemplate::parse(
      "{% macro m(x) %}<{{ x|upper }}>{% endmacro %}{% for a in messages %}{{ m(a.content) }}"
      "{{ 'literal' ~ loop.index }}{% endfor %}");
  ASSERT_TRUE(chat);
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < texts.size(); ++t)
    threads.emplace_back([&chat, &text = texts[t], t] {
      ChatTemplate::Input input;
      input.messages = {{{"role", "user"}, {"content", "c" + std::to_string(t)}}};
      for (int round = 0; round < 100; ++round) text = joined(chat->render(input).value());
    });
  for (std::thread& thread : threads) thread.join();
  for (size_t t = 0; t < texts.size(); ++t)
    EXPECT_EQ(texts[t], "<C" + std::to_string(t) + ">literal1");
}

TEST(ChatTemplate, TellsWhyItRefused) {
  const auto text = render("{{ raise_exception('roles must alternate') }}", {});
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::template_error);
  EXPECT_EQ(text.error().message,
            "the chat template refused the conversation: roles must alternate");
}

TEST(ChatTemplate, BosAndEosAreUndefinedWhenTheModelHasNone) {
  EXPECT_EQ(render("[{{ bos_token }}{{ eos_token is defined }}]", {}).value(), "[False]");
}

TEST(ChatTemplate, ExtraVariablesCannotReplaceTheConversation) {
  ChatTemplate::Input input;
  input.extra = {{"messages", 1}};
  const auto text = render("x", input);
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, ErrorCode::invalid_argument);
}

TEST(ChatTemplate, ToolsKeepTheOrderOfTheirFields) {
  ChatTemplate::Input input;
  input.tools = Json::parse(R"([{"z": 1, "a": {"y": 2, "b": 3}}])");
  EXPECT_EQ(render("{{ tools|tojson }}", input).value(), R"([{"z": 1, "a": {"y": 2, "b": 3}}])");
}

}  // namespace
}  // namespace octavo
