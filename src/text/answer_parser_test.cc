// Answers of every format, whole and cut in every way: the parts are the same.
#include "text/answer_parser.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

namespace octavo {
namespace {

const ReasoningFormat* reasoning(std::string_view name) { return *find_reasoning_format(name, ""); }
const ToolFormat* tools(std::string_view name) { return *find_tool_format(name, ""); }

// Parsed in pieces that end at the cuts.
AnswerParts parse_cut(const std::string& text, const AnswerFormat& format,
                      const std::vector<size_t>& cuts) {
  AnswerParser parser(format);
  AnswerParts all;
  const auto add = [&](const AnswerParts& part) {
    all.reasoning += part.reasoning;
    all.content += part.content;
    all.calls.insert(all.calls.end(), part.calls.begin(), part.calls.end());
  };
  size_t begin = 0;
  for (const size_t cut : cuts) {
    add(parser.push(std::string_view(text).substr(begin, cut - begin)));
    begin = cut;
  }
  add(parser.push(std::string_view(text).substr(begin)));
  add(parser.finish());
  return all;
}

void expect_same_for_every_cut(const std::string& text, const AnswerFormat& format) {
  const AnswerParts whole = parse_answer(text, format);
  std::vector<size_t> everywhere;
  for (size_t i = 0; i <= text.size(); ++i) {
    ASSERT_EQ(parse_cut(text, format, {i}), whole) << text << " cut at " << i;
    everywhere.push_back(i);
  }
  EXPECT_EQ(parse_cut(text, format, everywhere), whole) << text;
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<size_t> cuts;
    for (size_t i = 0; i <= text.size(); ++i)
      if (random() % 4 == 0) cuts.push_back(i);
    ASSERT_EQ(parse_cut(text, format, cuts), whole) << text << " in round " << round;
  }
}

struct Case {
  AnswerFormat format;
  std::string text;
  AnswerParts expected;
};

void expect_parts(const std::vector<Case>& cases) {
  for (const Case& item : cases) {
    const AnswerParts parts = parse_answer(item.text, item.format);
    EXPECT_EQ(parts.reasoning, item.expected.reasoning) << item.text;
    EXPECT_EQ(parts.content, item.expected.content) << item.text;
    EXPECT_EQ(parts.calls, item.expected.calls) << item.text;
    expect_same_for_every_cut(item.text, item.format);
  }
}

TEST(AnswerParser, SplitsReasoningFromContent) {
  const AnswerFormat qwen{.reasoning = reasoning("qwen3")};
  const AnswerFormat opened{.reasoning = reasoning("qwen3"), .begins_in_reasoning = true};
  const AnswerFormat mistral{.reasoning = reasoning("mistral")};
  const AnswerFormat granite{.reasoning = reasoning("granite")};
  expect_parts({
      {qwen, "<think>\nWhy?\n</think>\n\nSo.\n", {"Why?", "So.\n", {}}},
      {qwen, "\n <think>a\n\n b</think>c", {"a\n\n b", "c", {}}},
      {qwen, "<think>\n\n</think>\n\nSo.", {"", "So.", {}}},
      {qwen, "No thoughts.", {"", "No thoughts.", {}}},
      {qwen, " \n x <think>a</think>", {"", " \n x <think>a</think>", {}}},
      {qwen, "<think>cut off in the mid", {"cut off in the mid", "", {}}},
      {qwen, "<think>cut off </thi", {"cut off </thi", "", {}}},
      {qwen, "<think>a</ think>b<</think>c</think>d", {"a</ think>b<", "c</think>d", {}}},
      {qwen, "<thin", {"", "<thin", {}}},
      {qwen, "<thinking>x", {"", "<thinking>x", {}}},
      {qwen, "   ", {"", "   ", {}}},
      {qwen, "", {}},
      {opened, "Why?\n</think>\n\nSo.", {"Why?", "So.", {}}},
      {opened, "<think>\nWhy?</think>So.", {"Why?", "So.", {}}},
      {opened, "</think>So.", {"", "So.", {}}},
      {opened, "  \n</think>So.", {"", "So.", {}}},
      {opened, "all of it", {"all of it", "", {}}},
      {opened, "<thi", {"<thi", "", {}}},
      {mistral, "[THINK]é 日本[/THINK] ok", {"é 日本", "ok", {}}},
      {mistral, "[[THINK]a", {"", "[[THINK]a", {}}},
      {granite, "Here is my thought process: a b\n\nHere is my response: c", {"a b", "c", {}}},
      {granite, "Here is my response: c", {"", "Here is my response: c", {}}},
  });
}

TEST(AnswerParser, HermesCalls) {
  const AnswerFormat hermes{.tools = tools("hermes")};
  const std::string one = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>";
  const std::string two =
      "<tool_call>{\"arguments\":{\"s\":\"</tool_call>\\\"}\"},\"name\":\"g\"}</tool_call>";
  const ToolCall f{"f", R"({"a": 1})"}, g{"g", R"({"s":"</tool_call>\"}"})"};
  expect_parts({
      {hermes, one, {"", "", {f}}},
      {hermes, one + "\n" + two + "\n", {"", "", {f, g}}},
      {hermes, two + one, {"", "", {g, f}}},
      {hermes, "Let me see.\n\n" + one, {"", "Let me see.", {f}}},
      {hermes, "\n\n" + one + "\n\nDone. " + two, {"", "\n\nDone.", {f, g}}},
      // Forgotten or cut-off ends.
      {hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}", {"", "", {f}}},
      {hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}} </tool_", {"", "", {f}}},
      {hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}" + two, {"", "", {f, g}}},
      {hermes, "<tool_call>{\"name\": \"f\"}</tool_call>", {"", "", {{"f", "{}"}}}},
      {hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}}x", {"", "x", {{"f", "{}"}}}},
      // As OpenAI's API has them.
      {hermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": \" {\\\"a\\\": 1}\"}</tool_call>",
       {"", "", {{"f", R"({"a": 1})"}}}},
      // Numbers and spaces stay as they were written.
      {hermes,
       "<tool_call>{\"name\":\"f\",\"arguments\":{\"n\" : 123456789012345678901234567890, "
       "\"x\":1.50}}",
       {"", "", {{"f", R"({"n" : 123456789012345678901234567890, "x":1.50})"}}}},
      {hermes,
       "<tool_call>{\"name\":\"\\u0066\",\"arguments\":{\"a\":\"\\u00e9 日\"}}</tool_call>",
       {"", "", {{"f", R"({"a":"\u00e9 日"})"}}}},
  });
}

// Nothing is lost: it is content to the byte.
TEST(AnswerParser, WhatIsNoCallStaysContent) {
  const AnswerFormat hermes{.tools = tools("hermes")}, llama{.tools = tools("llama3_json")},
      mistral{.tools = tools("mistral")};
  for (const std::string text :
       {"",
        " ",
        "Hello.",
        "a < b\n",
        "<tool_call",
        "<tool_call>",
        "<tool_call> ",
        "<tool_call>\nnone\n</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ",
        "<tool_call>{\"name\": 1}</tool_call>",
        "<tool_call>{}</tool_call>",
        "<tool_call>[{\"name\": \"f\"}]</tool_call>",
        "</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"name\": \"g\"}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": {}, \"parameters\": {}}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1e999}}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"\\ud800\"}}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"\n\"}}</tool_call>",
        "<tool_call>{\"name\": \"f\" \"arguments\": {}}</tool_call>",
        "<tool_call>{'name': 'f'}</tool_call>"}) {
    EXPECT_EQ(parse_answer(text, hermes), (AnswerParts{"", text, {}}));
    expect_same_for_every_cut(text, hermes);
  }
  for (const std::string text :
       {"{\"city\": \"Paris\"}", "{\"name\": \"Bob\"}", "{\"name\": \"Bob\", \"age\": 3}", "{",
        "{\"name\": \"f\", \"para", "See {\"name\": \"f\", \"parameters\": {}}",
        "<|python_tag|>print(1)", "<|python_tag|>", "<|python_tag|>a.call(q=\"x\")",
        "{} {\"name\": \"f\", \"parameters\": {}}", ";", "{\"a\": [1, 2}",
        "[{\"name\": \"f\", \"parameters\": {}}]"}) {
    EXPECT_EQ(parse_answer(text, llama), (AnswerParts{"", text, {}}));
    expect_same_for_every_cut(text, llama);
  }
  for (const std::string text :
       {"[1, 2]", "[TOOL_CALLS]", "[TOOL_CALLS] ", "[TOOL_CALLS]f", "[TOOL_CALLS][]",
        "[TOOL_CALLS][1]", "[TOOL_CALLS]f[ARGS]", "[TOOL_CALLS]f[ARGS]{\"a\":", "[TOOL_CALLS]f g{}",
        "[TOOL_CALLS]f[OTHER]{}", "[TOOL_CALLS]!{}", "[TOOL_CALLS]f{\"a\" 1}",
        "[TOOL_CALLS][{\"name\": \"f\"}, 3]", "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}",
        "[[TOOL_CALL"}) {
    EXPECT_EQ(parse_answer(text, mistral), (AnswerParts{"", text, {}}));
    expect_same_for_every_cut(text, mistral);
  }
  const std::string deep =
      "<tool_call>{\"name\":\"f\",\"arguments\":{\"a\":" + std::string(60, '[') +
      std::string(60, ']') + "}}";
  EXPECT_EQ(parse_answer(deep, hermes), (AnswerParts{"", deep, {}}));
}

TEST(AnswerParser, ACallAfterOneThatIsBroken) {
  const AnswerFormat hermes{.tools = tools("hermes")}, mistral{.tools = tools("mistral")};
  const std::string good = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
  const ToolCall f{"f", "{}"};
  expect_parts({
      {hermes, "<tool_call>{bad}</tool_call>" + good, {"", "<tool_call>{bad}</tool_call>", {f}}},
      {hermes, "<tool_call>" + good, {"", "<tool_call>", {f}}},
      {hermes,
       "<tool_call>{\"a\": 1}</tool_call> " + good,
       {"", "<tool_call>{\"a\": 1}</tool_call>", {f}}},
      {hermes, "<<tool_call>{" + good, {"", "<<tool_call>{", {f}}},
      {mistral, "[TOOL_CALLS]![TOOL_CALLS]f{}", {"", "[TOOL_CALLS]!", {f}}},
  });
}

TEST(AnswerParser, LlamaCalls) {
  const AnswerFormat llama{.tools = tools("llama3_json")};
  const ToolCall f{"f", R"({"a": "x"})"}, g{"g", "{}"};
  const std::string one = R"({"name": "f", "parameters": {"a": "x"}})",
                    two = R"({"type": "function", "name": "g", "parameters": {}})";
  expect_parts({
      {llama, one, {"", "", {f}}},
      {llama, "\n\n" + one + "\n", {"", "", {f}}},
      {llama, "<|python_tag|>" + one, {"", "", {f}}},
      {llama, one + "; " + two, {"", "", {f, g}}},
      {llama, "<|python_tag|>" + one + ";" + two + ";", {"", "", {f, g}}},
      {llama, one + "\n" + two, {"", "", {f, g}}},
      {llama, one + "; and then", {"", "; and then", {f}}},
      {llama, one + " {\"x\": 1}", {"", " {\"x\": 1}", {f}}},
      {llama, "I call <|python_tag|>" + two, {"", "I call", {g}}},
      {llama, R"({"name": "f", "arguments": {"a": "x"}})", {"", "", {f}}},
  });
}

TEST(AnswerParser, MistralCalls) {
  const AnswerFormat mistral{.tools = tools("mistral")};
  const ToolCall f{"f", R"({"a": 1})"}, g{"g.h-1", "{}"};
  expect_parts({
      {mistral, R"([TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}])", {"", "", {f}}},
      {mistral,
       R"([TOOL_CALLS][{"name": "f", "arguments": {"a": 1}, "id": "abc123DEF"}, {"name": "g.h-1", "arguments": {}}])",
       {"", "", {f, g}}},
      {mistral, R"([TOOL_CALLS]f[ARGS]{"a": 1})", {"", "", {f}}},
      {mistral, R"([TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g.h-1{})", {"", "", {f, g}}},
      {mistral, R"([TOOL_CALLS]f[CALL_ID]abc123DEF[ARGS]{"a": 1})", {"", "", {f}}},
      {mistral, "I look. [TOOL_CALLS]f [ARGS] {\"a\": 1} \n", {"", "I look.", {f}}},
      {mistral, R"([TOOL_CALLS]f{"a": 1} Done)", {"", " Done", {f}}},
  });
}

TEST(AnswerParser, ReasoningThenCalls) {
  const AnswerFormat both{.reasoning = reasoning("qwen3"), .tools = tools("hermes")};
  const std::string call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
  const ToolCall f{"f", "{}"};
  expect_parts({
      {both, "<think>I need f.</think>\n\n" + call, {"I need f.", "", {f}}},
      {both, "<think>" + call + "</think>Hi" + call, {call, "Hi", {f}}},
      {both, "<think>" + call, {call, "", {}}},
      {both, call, {"", "", {f}}},
  });
}

TEST(AnswerParser, WithoutParallelCallsTheFirstIsKept) {
  const AnswerFormat hermes{.tools = tools("hermes"), .parallel_calls = false};
  const std::string call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
  expect_parts({{hermes, call + call, {"", "", {{"f", "{}"}}}}});
  const AnswerFormat mistral{.tools = tools("mistral"), .parallel_calls = false};
  expect_parts(
      {{mistral, R"([TOOL_CALLS][{"name": "f"}, {"name": "g"}])", {"", "", {{"f", "{}"}}}}});
}

// Text without a call is never held back but for what may begin one.
TEST(AnswerParser, ContentFlows) {
  AnswerParser parser({.reasoning = reasoning("qwen3"), .tools = tools("hermes")});
  EXPECT_EQ(parser.push("<think>a b").reasoning, "a b");
  EXPECT_EQ(parser.push(" \n").reasoning, "");
  EXPECT_EQ(parser.push("c</think>Hel").content, "Hel");
  EXPECT_EQ(parser.push("lo <").content, "lo");
  EXPECT_EQ(parser.push("b>").content, " <b>");
  EXPECT_EQ(parser.finish().content, "");
}

TEST(AnswerParser, CountsTheBytesOfTheBlock) {
  AnswerParser parser({.reasoning = reasoning("qwen3")});
  (void)parser.push("<thi");
  EXPECT_EQ(parser.reasoning_bytes(), 0u);
  (void)parser.push("nk>a");
  EXPECT_EQ(parser.reasoning_bytes(), 8u);
  (void)parser.push("b</think>\nrest");
  EXPECT_EQ(parser.reasoning_bytes(), 17u);
}

// Random strings of what the formats are made of.
TEST(AnswerParser, RandomAnswersDoNotDependOnCuts) {
  const std::string_view words[] = {"<think>",
                                    "</think>",
                                    "<tool_call>",
                                    "</tool_call>",
                                    "[TOOL_CALLS]",
                                    "[ARGS]",
                                    "[CALL_ID]",
                                    "<|python_tag|>",
                                    "{\"name\":\"f\",\"arguments\":{}}",
                                    "{\"name\":\"f\",\"parameters\":{\"a\":[1]}}",
                                    "[{\"name\":\"f\"}]",
                                    "f",
                                    "{}",
                                    "{",
                                    "}",
                                    "[",
                                    "]",
                                    "\"",
                                    "\\",
                                    " ",
                                    "\n",
                                    ";",
                                    "<",
                                    "é",
                                    "1",
                                    ",",
                                    ":",
                                    "[/THINK]",
                                    "[THINK]"};
  std::mt19937 random(11);
  for (int round = 0; round < 4000; ++round) {
    AnswerFormat format;
    const auto reasonings = reasoning_formats();
    if (random() % 2) format.reasoning = &reasonings[random() % reasonings.size()];
    format.begins_in_reasoning = random() % 2;
    if (random() % 8) format.tools = &tool_formats()[random() % tool_formats().size()];
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += words[random() % std::size(words)];
    const AnswerParts whole = parse_answer(text, format);
    std::vector<size_t> cuts;
    for (size_t i = 0; i <= text.size(); ++i)
      if (random() % 2) cuts.push_back(i);
    ASSERT_EQ(parse_cut(text, format, cuts), whole) << text;
    for (const ToolCall& call : whole.calls) {
      EXPECT_FALSE(call.name.empty());
      EXPECT_TRUE(nlohmann::json::parse(call.arguments).is_object());
    }
    if (whole.calls.empty() && !format.reasoning) {
      EXPECT_EQ(whole.content, text);
    }
  }
}

// Long answers of the worst kinds take time linear in them: this ends at once, or not at all.
TEST(AnswerParser, HostileLengths) {
  constexpr size_t kCount = 200'000;
  const auto repeated = [](std::string_view text) {
    std::string all;
    for (size_t i = 0; i < kCount; ++i) all += text;
    return all;
  };
  for (const std::string_view piece :
       {"<tool_call>{\"a\":\"", "<tool_call>{", "\n", "[TOOL_CALLS]f", "<", "[", "<think>",
        "</think>", "{\"", "[TOOL_CALLS][{"})
    for (const ToolFormat& format : tool_formats()) {
      const AnswerFormat all{
          .reasoning = reasoning("qwen3"), .begins_in_reasoning = false, .tools = &format};
      const std::string text = repeated(piece);
      const AnswerParts parts = parse_answer(text, all);
      EXPECT_TRUE(parts.calls.empty());
      EXPECT_LE(parts.content.size() + parts.reasoning.size(), text.size());
    }
}

}  // namespace
}  // namespace octavo
