// The shape of messages: what clients may send, and what a template gets to see.
#include "text/chat_messages.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/paths.h"
#include "text/chat_input.h"
#include "text/chat_template.h"
#include "text/ordered_json.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

const std::string kStrings =
    "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}";
const std::string kParts =
    "{% for m in messages %}{{ m['role'] + ': ' }}{% for part in m['content'] %}"
    "{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}{{ '\n' }}{% endfor "
    "%}";
const std::string kBoth =
    "{% for m in messages %}{{ m.role + ': ' }}{% if m.content is string %}{{ m.content | trim }}"
    "{% else %}{% for part in m.content %}{{ part.text | trim }}{% endfor %}{% endif %}{{ '\n' }}"
    "{% endfor %}";

ChatTemplate parse(const std::string& source) {
  return std::move(ChatTemplate::parse(source).value());
}

Result<std::string> conversation(const std::string& source, const std::string& messages) {
  const ChatTemplate chat = parse(source);
  OCTAVO_TRY(Json plain, plain_messages(Json::parse(messages)));
  ChatTemplate::Input input;
  input.messages = shape_messages(std::move(plain), chat.traits());
  OCTAVO_TRY(const auto spans, chat.render(input));
  std::string text;
  for (const TextSpan& span : spans) text += span.text;
  return text;
}

TEST(ChatMessages, TheTemplateDecidesOnTheShape) {
  EXPECT_FALSE(parse(kStrings).traits().wants_parts);
  EXPECT_TRUE(parse(kParts).traits().wants_parts);
  EXPECT_FALSE(parse(kBoth).traits().wants_parts);
  EXPECT_FALSE(parse("{% for m in messages %}{{ m }}{% endfor %}").traits().wants_parts);
  EXPECT_FALSE(parse("{{ raise_exception('no') }}").traits().wants_parts);
  EXPECT_FALSE(parse("{% for x in range(9999) %}{% for y in range(9999) %}{% endfor %}{% endfor %}")
                   .traits()
                   .wants_parts);
  for (const char* name : {"smollm2", "qwen2", "gemma3"}) {
    const auto path =
        testing::test_data(std::string("chat_templates/") + name + ".chat_template.jinja");
    EXPECT_FALSE(parse(testing::read_file(path)).traits().wants_parts) << name;
  }
}

TEST(ChatMessages, StringsAndPartsRenderAlike) {
  const std::string sent[] = {
      R"([{"role": "user", "content": "a b"}])",
      R"([{"role": "user", "content": [{"type": "text", "text": "a b"}]}])",
      R"([{"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}])",
  };
  for (const std::string& source : {kStrings, kParts, kBoth})
    for (const std::string& messages : sent)
      EXPECT_EQ(conversation(source, messages).value(), "user: a b\n") << source << messages;
}

TEST(ChatMessages, AnEmptyListIsAnEmptyText) {
  for (const std::string& source : {kStrings, kParts, kBoth})
    EXPECT_EQ(conversation(source, R"([{"role": "user", "content": []}])").value(), "user: \n");
}

// Templates fail over null, or print Python's None.
TEST(ChatMessages, AnAssistantThatSaysNothingIsAnEmptyText) {
  for (const char* fields : {R"("content": null)", R"("content": null, "tool_calls": [])",
                             R"("content": null, "refusal": "No.")", R"("tool_calls": null)",
                             R"("content": [{"type": "refusal", "refusal": "No."}])"})
    for (const std::string& source : {kStrings, kParts, kBoth})
      EXPECT_EQ(
          conversation(source, std::string(R"([{"role": "assistant", )") + fields + "}]").value(),
          "assistant: \n")
          << fields;
}

TEST(ChatMessages, ADevelopersMessageIsTheSystems) {
  const std::string message = R"([{"role": "developer", "content": "x"}])";
  EXPECT_EQ(conversation(kStrings, message).value(), "system: x\n");
  const std::string knows = kStrings + "{% if messages[0].role == 'developer' %}!{% endif %}";
  EXPECT_EQ(conversation(knows, message).value(), "developer: x\n!");
}

TEST(ChatMessages, ReasoningHasOneNameForEachTemplate) {
  for (const std::string field : {"reasoning_content", "reasoning", "thinking"}) {
    const std::string source = "{% for m in messages %}{{ m.content }}{% if m." + field +
                               " %}({{ m." + field + " }}){% endif %}{% endfor %}";
    for (const std::string sent : {"reasoning_content", "reasoning"})
      EXPECT_EQ(conversation(source,
                             R"([{"role": "assistant", "content": "a", ")" + sent + R"(": "why"}])")
                    .value(),
                "a(why)")
          << field << " as " << sent;
  }
  const std::string both =
      R"([{"role": "assistant", "content": "a", "reasoning": "x", "reasoning_content": )";
  EXPECT_TRUE(plain_messages(Json::parse(both + "\"x\"}]")));
  EXPECT_TRUE(plain_messages(Json::parse(both + "null}]")));
  const auto other_says_nothing = plain_messages(Json::parse(both + "\"\"}]"));
  ASSERT_TRUE(other_says_nothing);
  EXPECT_EQ((*other_says_nothing)[0]["reasoning_content"], "x");
  const auto differ = plain_messages(Json::parse(both + "\"y\"}]"));
  ASSERT_FALSE(differ);
  EXPECT_EQ(differ.error().message,
            "messages[0].reasoning and messages[0].reasoning_content mean the same and differ; "
            "give one");
}

TEST(ChatMessages, OtherShapesAreRefusedByPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "at least one message"},
      {"{}", "at least one message"},
      {"[1]", "messages[0] must be an object"},
      {R"([{"content": "x"}])", "messages[0] needs a 'role'"},
      {R"([{"role": 1, "content": "x"}])", "messages[0] needs a 'role'"},
      {R"([{"role": "", "content": "x"}])", "messages[0] needs a 'role'"},
      {R"([{"role": "user"}])", "messages[0] needs a 'content'"},
      {R"([{"role": "user", "content": null}])", "messages[0] needs a 'content'"},
      {R"([{"role": "user", "content": 1}])", "messages[0].content must be a string"},
      {R"([{"role": "user", "content": "x"}, {"role": "user", "content": ["x"]}])",
       "messages[1].content[0] must be an object"},
      {R"([{"role": "user", "content": [{"text": "x"}]}])",
       "messages[0].content[0] needs a string 'type'"},
      {R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])",
       "messages[0].content[0].type is 'image_url'; only 'text' is known"},
      {R"([{"role": "user", "content": [{"type": "text"}]}])",
       "messages[0].content[0].text must be"},
  };
  for (const auto& [messages, part] : cases) {
    const auto normal = plain_messages(Json::parse(messages));
    ASSERT_FALSE(normal) << messages;
    EXPECT_EQ(normal.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(normal.error().message.find(part), std::string::npos) << normal.error().message;
  }
}

const std::string kCalls =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name }}("
    "{{ c.function.arguments | tojson }}){% endfor %}{{ m.content or '' }}{% endfor %}";

std::string one_call(const std::string& arguments) {
  const Json call = {{"id", "call_1"},
                     {"type", "function"},
                     {"function", {{"name", "f"}, {"arguments", arguments}}}};
  return Json::array({{{"role", "assistant"}, {"tool_calls", Json::array({call})}}}).dump();
}

TEST(ChatMessages, ArgumentsBecomeWhatTheTemplateWrites) {
  EXPECT_EQ(conversation(kCalls, one_call(R"( {"b": 1, "a": "é"} )")).value(),
            R"(f({"b": 1, "a": "é"}))");
  EXPECT_EQ(conversation(kCalls, one_call("")).value(), "f({})");
  EXPECT_EQ(conversation(kCalls, R"([{"role": "assistant", "content": "x", "tool_calls": [
      {"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g"}}]}])")
                .error()
                .message,
            "messages[0].tool_calls[1].function.arguments must be a string of JSON");
  const std::string text =
      "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ 'a: ' + c.function.arguments }}"
      "{% endfor %}{% endfor %}";
  EXPECT_EQ(conversation(text, one_call(R"({"b":1})")).value(), R"(a: {"b":1})");
  EXPECT_EQ(conversation(text, R"([{"role": "assistant", "tool_calls": [
      {"function": {"name": "f", "arguments": {"b": 1}}}]}])")
                .value(),
            R"(a: {"b":1})");
}

// What a client may make long is walked through a fixed number of times.
TEST(ChatMessages, ManyFieldsTakeNoTime) {
  Json many = {{"role", "user"}, {"content", "x"}};
  for (int i = 0; i < 100; ++i) many["k" + std::to_string(i)] = i;
  const auto refused = plain_messages(Json::array({many}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "messages[0] has 102 fields; allowed: at most 64");
  std::string arguments = "{\"city\":[]";
  for (int i = 0; i < 200'000; ++i) arguments += ",\"" + std::to_string(i) + "\":1";
  EXPECT_EQ(parse_ordered_json(arguments + "}").size(), 200'001u);
  const std::string text = R"({"a": [1, {"b": null}, []], "c": "\u00e9\n", "d": {}, "e": -2.5e3})";
  EXPECT_EQ(parse_ordered_json(text), Json::parse(text));
}

TEST(ChatMessages, CallsThatAreNoneAreRefusedByPlace) {
  const auto message = [](const std::string& source, const std::string& messages) {
    const auto text = conversation(source, messages);
    return text ? "rendered " + *text : text.error().message;
  };
  const std::string place = "messages[0].tool_calls";
  for (const char* broken : {"1", "[]", "{", "{\"a\": 1} x", "{\"a\": 1e999}", "{'a': 1}"})
    EXPECT_EQ(message(kCalls, one_call(broken)),
              place + "[0].function.arguments is no JSON object of at most 48 levels")
        << broken;
  for (const size_t depth : {1000u, 1'000'000u})
    EXPECT_NE(message(kCalls, one_call("{\"a\":" + std::string(depth, '['))).find("48 levels"),
              std::string::npos);
  EXPECT_NE(message(kCalls, one_call("{\"a\":[" + std::string(5 << 20, ' ') + "1]}"))
                .find("over 4194304 bytes"),
            std::string::npos);
  EXPECT_EQ(message(kCalls, R"([{"role": "assistant", "tool_calls": {"a": 1}}])"),
            place + " must be a list");
  EXPECT_EQ(message(kCalls, R"([{"role": "assistant", "tool_calls": [1]}])"),
            place + "[0].function must be an object");
  EXPECT_EQ(message(kCalls, R"([{"role": "assistant", "tool_calls": [{"function": {}}]}])"),
            place + "[0].function.name must be a string");
}

}  // namespace
}  // namespace octavo
