// Conversations as clients send them, with every template of tests/data/chat_corpus: nothing that
// is taken is lost in silence, and what the server answered can always be sent back.
#include "text/conversation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "support/paths.h"
#include "text/answer_parser.h"
#include "text/generic_tools.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

std::string corpus(const std::string& name) {
  return testing::read_file(testing::test_data("chat_corpus/" + name));
}

std::string text_of(const Conversation& conversation) {
  std::string text;
  for (const TextSpan& span : conversation.prompt) text += span.text;
  return text;
}

bool has(std::string text, std::string part) {
  for (std::string* each : {&text, &part})
    std::transform(each->begin(), each->end(), each->begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text.find(part) != std::string::npos;
}

Json message(const std::string& role, const Json& content) {
  return {{"role", role}, {"content", content}};
}

Json turns(std::vector<Json> messages) { return Json(std::move(messages)); }

Json weather_tool() {
  return Json::parse(R"([{"type": "function", "function": {"name": "get_weather",
      "description": "Says whether it rains.", "parameters": {"type": "object",
      "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])");
}

struct Model {
  std::string name;
  ChatTemplate chat_template;
  const ToolFormat* tool_format;
};

class Conversations : public ::testing::Test {
 protected:
  Conversations() {
    std::vector<std::string> names;
    for (const auto& file :
         std::filesystem::directory_iterator(testing::test_data("chat_corpus/templates")))
      names.push_back(file.path().stem().string());
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
      const std::string source = corpus("templates/" + name + ".jinja");
      models_.push_back({name, std::move(ChatTemplate::parse(source, name).value()),
                         find_tool_format("auto", source).value()});
    }
  }

  static Result<Conversation> render(const Model& model, const Json& messages,
                                     const Json& tools = nullptr,
                                     const ConversationOptions& more = {}) {
    ChatTemplate::Input input;
    input.messages = messages;
    input.tools = tools;
    input.bos_token = "<s>";
    input.eos_token = "</s>";
    ConversationOptions options = more;
    options.tool_format = model.tool_format;
    options.reads_answers = true;
    return render_conversation(model.chat_template, input, options);
  }

  std::vector<Model> models_;
};

// --- nothing is lost ------------------------------------------------------------------------

Json call(const std::string& id, const std::string& name, const std::string& arguments) {
  return {
      {"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", arguments}}}};
}

Json with_call() {
  Json asks = message("assistant", "One moment.");
  asks["tool_calls"] = Json::array({call("call00001", "get_weather", R"({"city": "Oslo"})")});
  Json result = message("tool", "It rains.");
  result["tool_call_id"] = "call00001";
  return turns({message("user", "Rain in Oslo?"), asks, result, message("assistant", "Yes, rain."),
                message("user", "And tomorrow?")});
}

std::vector<Json> conversations() {
  Json named = message("user", "Who am I?");
  named["name"] = "ada";
  Json thought = message("assistant", "You are Ada.");
  thought["reasoning"] = "The name says it.";
  Json refused = message("assistant", nullptr);
  refused["refusal"] = "I will not say.";
  const Json parts = Json::parse(
      R"([{"type": "text", "text": "One part"}, {"type": "text", "text": "and two", "note": "x"}])");
  return {
      turns({message("user", "Hi")}),
      turns({message("system", "Be brief."), message("user", "Hi")}),
      turns({message("developer", "Be brief."), message("user", "Hi")}),
      turns({message("user", "One"), message("assistant", "Two"), message("user", "Three")}),
      turns({message("user", "One"), message("assistant", "Two"), message("system", "Be kind."),
             message("user", "Three")}),
      turns({named, thought, message("user", "Sure?")}),
      turns({message("user", "Well?"), refused, message("user", "Why?")}),
      turns({message("user", parts)}),
      with_call(),
  };
}

struct Place {
  Json::json_pointer at;
  std::string name;  // as a warning says it
};

void find_places(const Json& value, const Json::json_pointer& at, const std::string& name,
                 std::vector<Place>& places) {
  if (value.is_string() && at.back() != "type") places.push_back({at, name});
  if (value.is_array())
    for (size_t i = 0; i < value.size(); ++i)
      find_places(value[i], at / i, fmt::format("{}[{}]", name, i), places);
  if (value.is_object())
    for (const auto& [key, item] : value.items())
      find_places(item, at / key, name + "." + key, places);
}

// Of roles only user and assistant are exchanged: templates may print any two others alike.
std::string other_role(const Json& message) {
  if (message.contains("tool_calls")) return message["role"];
  if (message["role"] == "user") return "assistant";
  return message["role"] == "assistant" ? std::string("user") : message["role"].get<std::string>();
}

Json changed(const Json& messages, const Place& place) {
  Json other = messages;
  Json& value = other[place.at];
  if (place.at.back() == "role")
    value = other_role(other[place.at.parent_pointer()]);
  else if (place.at.back() == "arguments")
    value = R"({"city": "Bergen"})";
  else
    value = value.get<std::string>() + " changed";
  return other;
}

TEST_F(Conversations, WhatIsTakenHasAnEffectOrIsNamed) {
  size_t tried = 0, named = 0;
  for (const Model& model : models_)
    for (const Json& messages : conversations()) {
      const auto before = render(model, messages);
      if (!before) continue;
      std::vector<Place> places;
      find_places(messages, Json::json_pointer(), "messages", places);
      for (const Place& place : places) {
        const Json other = changed(messages, place);
        const auto after = other == messages ? before : render(model, other);
        if (!after || other == messages) continue;
        ++tried;
        if (text_of(*before) != text_of(*after)) continue;
        ++named;
        const bool told =
            std::any_of(after->warnings.begin(), after->warnings.end(),
                        [&](const std::string& warning) { return has(warning, place.name); });
        EXPECT_TRUE(told) << model.name << ": " << place.name << " of " << other << "\n"
                          << text_of(*after);
      }
    }
  EXPECT_GT(tried, 1500u);
  EXPECT_GT(named, 50u);
}

TEST_F(Conversations, NoInstructionIsLost) {
  for (const Model& model : models_)
    for (const char* role : {"system", "developer"}) {
      const auto first = render(model, turns({message(role, "Rhyme."), message("user", "Hi")}));
      EXPECT_TRUE(!first || has(text_of(*first), "Rhyme.")) << model.name;
      const auto later = render(model, turns({message("user", "Hi"), message("assistant", "Hello"),
                                              message(role, "Rhyme."), message("user", "Go on")}));
      EXPECT_TRUE(!later || has(text_of(*later), "Rhyme.")) << model.name;
    }
}

TEST_F(Conversations, ALostMessageIsRefusedByItsPlace) {
  const Model model = {"the last two",
                       *ChatTemplate::parse("{% for m in messages[-2:] %}[{{ m.content }}]"
                                            "{% endfor %}"),
                       nullptr};
  const auto lost =
      render(model, turns({message("user", "a"), message("user", "b"), message("user", "c")}));
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(
      lost.error().message.starts_with("messages[0] of the role \"user\" would leave no "
                                       "trace in the prompt"))
      << lost.error().message;
  const auto instruction = render(
      model, turns({message("system", "a"), message("assistant", "b"), message("assistant", "c")}));
  ASSERT_FALSE(instruction);
}

TEST_F(Conversations, ASystemsMessageThatTheTemplateDropsIsTheUsers) {
  const Model none = {"no system",
                      *ChatTemplate::parse("{% for m in messages %}{% if m.role != 'system' %}"
                                           "[{{ m.content }}]{% endif %}{% endfor %}"),
                      nullptr};
  EXPECT_EQ(text_of(*render(none, turns({message("developer", "a"), message("user", "b")}))),
            "[a\n\nb]");
  EXPECT_EQ(text_of(*render(none, turns({message("user", "a"), message("system", "b"),
                                         message("system", "c"), message("assistant", "d")}))),
            "[a\n\nb\n\nc][d]");
  const Model first = {"first system only",
                       *ChatTemplate::parse("{% for m in messages %}{% if loop.first or m.role != "
                                            "'system' %}[{{ m.content }}]{% endif %}{% endfor %}"),
                       nullptr};
  EXPECT_EQ(text_of(*render(first, turns({message("system", "a"), message("user", "b"),
                                          message("system", "c"), message("user", "d")}))),
            "[a][b][c\n\nd]");
}

TEST_F(Conversations, ManyFieldsWithoutEffectAreOneWarning) {
  const Model model = {"content",
                       *ChatTemplate::parse("{% for m in messages %}{{ m.content }}"
                                            "{% endfor %}"),
                       nullptr};
  Json messages = Json::array();
  for (int i = 0; i < 40; ++i) {
    messages.push_back(message("user", "x"));
    messages.back()["name"] = "ada";
  }
  const auto rendered = render(model, messages);
  ASSERT_TRUE(rendered);
  ASSERT_EQ(rendered->warnings.size(), 1u);
  EXPECT_EQ(rendered->warnings[0],
            "messages[0].name, messages[1].name, messages[2].name and 37 more have no effect: the "
            "model's chat template does not show it");
}

// A template that refuses some markers is asked for those of the contents alone.
TEST_F(Conversations, AMessageIsMissedThoughAnotherFieldIsRefused) {
  const Model model = {
      "first system only",
      *ChatTemplate::parse(
          "{% for m in messages %}{% if m.role != 'system' or loop.first %}<{{ m.content }}>"
          "{% endif %}{% if m.tool_call_id is defined and m.tool_call_id | length != 9 %}"
          "{{ raise_exception('ids have nine letters') }}{% endif %}{% endfor %}"),
      nullptr};
  Json messages = Json::array();
  for (int i = 0; i < 10; ++i) {
    messages.push_back(message("user", fmt::format("question {}", i)));
    messages.push_back(message("assistant", fmt::format("answer {}", i)));
  }
  messages[5]["reasoning"] = messages[5]["reasoning_content"] = "so";
  messages.push_back(message("tool", "sunny"));
  messages.back()["tool_call_id"] = "abcdefghi";
  messages.push_back(message("system", "Rhyme."));
  messages.push_back(message("user", "Go on"));
  const auto rendered = render(model, messages);
  ASSERT_TRUE(rendered) << rendered.error().message;
  EXPECT_TRUE(has(text_of(*rendered), "<Rhyme.\n\nGo on>")) << text_of(*rendered);
}

TEST_F(Conversations, AUserMayWriteOfTags) {
  const Model model = {
      "system with a last user message",
      *ChatTemplate::parse(
          "{% for m in messages %}{% if m.role != 'system' or "
          "messages[-1].role == 'user' %}<{{ m.content }}>{% endif %}{% endfor %}"),
      nullptr};
  const auto rendered =
      render(model, turns({message("user", "What is <tools> in XML?"), message("assistant", "It")}),
             weather_tool());
  ASSERT_TRUE(rendered) << rendered.error().message;
  EXPECT_TRUE(has(text_of(*rendered), "get_weather")) << text_of(*rendered);
}

// --- what the server answered is taken back --------------------------------------------------

// A call as the model writes it.
std::string written_call(const ToolFormat& format) {
  switch (format.syntax) {
    case ToolSyntax::hermes:
      return "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}}\n"
             "</tool_call>";
    case ToolSyntax::llama_json:
      return R"({"name": "get_weather", "parameters": {"city": "Oslo"}})";
    case ToolSyntax::mistral:
      return R"([TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}])";
  }
  return "";
}

// The message that clients send back, as they got it.
Json as_message(const AnswerParts& parts, const ToolFormat& format) {
  Json back = message("assistant", parts.content.empty() ? Json(nullptr) : Json(parts.content));
  back["refusal"] = nullptr;
  back["annotations"] = Json::array();
  back["reasoning_content"] = parts.reasoning.empty() ? Json(nullptr) : Json(parts.reasoning);
  for (size_t i = 0; i < parts.calls.size(); ++i)
    back["tool_calls"].push_back(call((format.short_ids ? "abc00000" : "call_") + std::to_string(i),
                                      parts.calls[i].name, parts.calls[i].arguments));
  return back;
}

struct Turn {
  std::string said;  // before the call
  int num_calls;
  bool tools_again;  // the second request offers them, too
};

TEST_F(Conversations, WhatTheServerAnsweredIsTakenBack) {
  const Turn turns[] = {{"", 1, true}, {"", 2, true}, {"Let me look. ", 1, true}, {"", 1, false}};
  for (const Model& model : models_)
    for (const bool has_system : {false, true})
      for (const Turn& turn : turns) {
        Json messages = Json::array();
        if (has_system) messages.push_back(message("system", "Be brief."));
        messages.push_back(message("user", "Rain in Oslo?"));
        const auto asked = render(model, messages, weather_tool());
        if (!asked && has_system && asked.error().code == ErrorCode::template_error) continue;
        ASSERT_TRUE(asked) << model.name << ": " << asked.error().message;
        ASSERT_NE(asked->tool_format, nullptr);
        EXPECT_TRUE(has(text_of(*asked), "get_weather")) << model.name;
        EXPECT_TRUE(has(text_of(*asked), "Says whether it rains")) << model.name;

        const ToolFormat& format = *asked->tool_format;
        const bool bare = format.syntax == ToolSyntax::llama_json;
        std::string answer = bare ? "" : turn.said;
        for (int i = 0; i < turn.num_calls; ++i)
          answer += (i > 0 ? (bare ? "; " : "\n") : "") + written_call(format);
        const AnswerParts parts = parse_answer(answer, {.tools = &format});
        ASSERT_EQ(parts.calls.size(), static_cast<size_t>(turn.num_calls)) << model.name << answer;
        messages.push_back(as_message(parts, format));
        for (const Json& made : messages.back()["tool_calls"]) {
          messages.push_back(message("tool", R"({"rain": "heavy"})"));
          messages.back()["tool_call_id"] = made["id"];
        }
        const Json tools = turn.tools_again ? weather_tool() : Json(nullptr);
        for (const char* next : {"", "It rains.", "Thanks!"}) {
          if (*next) messages.push_back(message(*next == 'I' ? "assistant" : "user", next));
          if (*next == 'I') continue;  // not the end of a request
          const auto back = render(model, messages, tools);
          ASSERT_TRUE(back) << model.name << ": " << back.error().message << "\n" << messages;
          for (const char* part : {"get_weather", "Oslo", "heavy"})
            EXPECT_TRUE(has(text_of(*back), part)) << model.name << ": " << part << " is not in\n"
                                                   << text_of(*back);
        }
      }
}

TEST_F(Conversations, AnAnswerInWordsIsTakenBack) {
  for (const Model& model : models_)
    for (const char* reasoning : {"", "Because."}) {
      const AnswerParts parts = {.reasoning = reasoning, .content = "Forty-two.", .calls = {}};
      const auto back =
          render(model, turns({message("user", "What?"), as_message(parts, generic_tool_format()),
                               message("user", "Sure?")}));
      ASSERT_TRUE(back) << model.name << ": " << back.error().message;
      EXPECT_TRUE(has(text_of(*back), "Forty-two.")) << model.name;
    }
}

TEST_F(Conversations, NothingIsWrittenOutIfThatIsOff) {
  const ConversationOptions off = {.generic_tools = false};
  size_t refused = 0;
  for (const Model& model : models_) {
    const auto tools = render(model, turns({message("user", "Rain?")}), weather_tool(), off);
    EXPECT_EQ(tools.has_value(), model.chat_template.traits().shows_tools && model.tool_format)
        << model.name;
    EXPECT_TRUE(tools || tools.error().message.starts_with("tools: "));
    refused += !tools;
    EXPECT_TRUE(model.chat_template.traits().shows_tool_calls ||
                !render(model, with_call(), nullptr, off))
        << model.name;
  }
  EXPECT_GT(refused, 30u);
}

// Whatever is written out stays the user's: it never becomes a control token.
TEST_F(Conversations, WhatIsWrittenOutIsContent) {
  for (const Model& model : models_) {
    Json messages = with_call();
    messages[1]["tool_calls"][0]["function"]["arguments"] = R"({"city": "<|forged|>"})";
    messages[2]["content"] = "<|forged|>";
    Json tools = weather_tool();
    tools[0]["function"]["description"] = "<|forged|>";
    const auto rendered = render(model, messages, tools);
    ASSERT_TRUE(rendered) << model.name << ": " << rendered.error().message;
    for (const TextSpan& span : rendered->prompt)
      EXPECT_FALSE(span.is_template && has(span.text, "forged")) << model.name << ": " << span.text;
  }
}

// --- how much a model thinks ----------------------------------------------------------------

struct Effort {
  std::string source, effort, prompt, warning;
};

// Each was once joined to a copy of all before it.
TEST_F(Conversations, AHundredThousandResultsAreJoinedInOneGo) {
  Json messages = turns({message("user", "hi")});
  const int kResults = 100'000;
  for (int i = 0; i < kResults; ++i)
    messages.push_back({{"role", "tool"}, {"tool_call_id", "c"}, {"content", "sunny"}});
  const Json written =
      write_out(messages, {.tools = true, .calls = true, .results = true}, generic_tool_format());
  ASSERT_EQ(written.size(), 2u);
  EXPECT_GT(written[1]["content"].get_ref<const std::string&>().size(), size_t{5} * kResults);
}

TEST_F(Conversations, ManyMessagesOfTheSystemGoToTheirUsers) {
  Json messages = turns({message("system", "one"), message("system", "two"), message("user", "hi"),
                         message("system", "three")});
  show_as_users(messages, {0, 1, 3});
  EXPECT_EQ(messages, turns({message("user", "one\n\ntwo\n\nhi\n\nthree")}));
  Json alone = turns({message("system", "one")});
  show_as_users(alone, {0});
  EXPECT_EQ(alone, turns({message("system", "one")}));
}

TEST_F(Conversations, NothingIsRenderedForWhoHasGone) {
  std::stop_source gone;
  gone.request_stop();
  const auto long_one = ChatTemplate::parse(
      "{% for i in range(99999) %}{{ i }}{% endfor %}{{ messages[0].content }}");
  ChatTemplate::Input input;
  input.messages = turns({message("user", "hi")});
  input.stop = gone.get_token();
  const auto rendered = render_conversation(*long_one, input, {});
  ASSERT_FALSE(rendered);
  EXPECT_EQ(rendered.error().code, ErrorCode::cancelled);
}

TEST_F(Conversations, EffortIsWhatTheTemplateHas) {
  const std::string thinks = "{{ 'think' if enable_thinking else 'no' }}";
  const std::string none = "the model's chat template has no variable for it";
  const Effort cases[] = {
      {thinks, "none", "no", ""},
      {thinks, "high", "think",
       "reasoning_effort \"high\" turns thinking on and has no other effect"},
      {"{{ thinking }}", "none", "False", ""},
      {"{{ reasoning_effort }}", "low", "low", ""},
      {"{{ reasoning_effort }} {{ enable_thinking }}", "none", "none False", ""},
      {"{{ thinking_budget }}", "none", "0", ""},
      {"{{ thinking_budget }}", "medium", "4096", ""},
      {"{{ thinking_budget }}", "xhigh", "-1", ""},
      {"x", "none", "x", "reasoning_effort \"none\" has no effect: " + none},
      {"x", "low", "x", "reasoning_effort \"low\" has no effect: " + none},
      {"x", "", "x", ""},
      // Words that are no variables.
      {"{{ 'thinking' }}", "none", "thinking", "reasoning_effort \"none\" has no effect: " + none},
      {"thinking{{ messages[0].thinking }}", "none", "thinking",
       "reasoning_effort \"none\" has no effect: " + none},
      {"{% set thinking = true %}x", "none", "x",
       "reasoning_effort \"none\" has no effect: " + none},
  };
  for (const Effort& item : cases) {
    const Model model = {"", *ChatTemplate::parse(item.source + "{{ messages[0].content }}"),
                         nullptr};
    const auto rendered =
        render(model, turns({message("user", "!")}), nullptr, {.reasoning_effort = item.effort});
    ASSERT_TRUE(rendered) << rendered.error().message;
    EXPECT_EQ(text_of(*rendered), item.prompt + "!");
    ASSERT_EQ(rendered->warnings.size(), item.warning.empty() ? 0u : 1u) << item.source;
    for (const std::string& warning : rendered->warnings)
      EXPECT_TRUE(has(warning, item.warning)) << warning;
  }
}

TEST_F(Conversations, VariablesOfTheRequestComeFirst) {
  const auto chat = ChatTemplate::parse("{{ enable_thinking }}{{ messages[0].content }}");
  ChatTemplate::Input input;
  input.messages = turns({message("user", "!")});
  input.extra = {{"enable_thinking", true}, {"enable_thought", true}};
  const auto rendered = render_conversation(*chat, input, {.reasoning_effort = "none"});
  ASSERT_TRUE(rendered);
  EXPECT_EQ(text_of(*rendered), "True!");
  ASSERT_EQ(rendered->warnings.size(), 2u);
  EXPECT_EQ(rendered->warnings[0],
            "chat_template_kwargs.enable_thought has no effect: the model's chat template does not "
            "read it");
  EXPECT_TRUE(has(rendered->warnings[1], "reasoning_effort \"none\" has no effect"));
}

TEST_F(Conversations, VerbosityIsAVariableOfTheTemplate) {
  const auto with = [](const std::string& source, const std::string& verbosity) {
    return *render({"", *ChatTemplate::parse(source + "{{ messages[0].content }}"), nullptr},
                   turns({message("user", "!")}), nullptr, {.verbosity = verbosity});
  };
  EXPECT_EQ(text_of(with("{{ verbosity }}", "low")), "low!");
  EXPECT_TRUE(with("{{ verbosity }}", "low").warnings.empty());
  EXPECT_TRUE(with("", "medium").warnings.empty());
  EXPECT_EQ(with("", "high").warnings.size(), 1u);
}

}  // namespace
}  // namespace octavo
