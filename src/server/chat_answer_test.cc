// Reasoning and calls of tools in the answers to chats: whole, and as the events of a stream.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "server/api_answer.h"
#include "server/read_answer.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

std::vector<TokenId> byte_tokens(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char byte : text) ids.push_back(TokenId{static_cast<unsigned char>(byte)});
  return ids;
}

const std::string kCall = R"(<tool_call>{"name": "f", "arguments": {"a": "é"}}</tool_call>)";

class ChatAnswer : public ::testing::Test {
 protected:
  ChatAnswer() {
    request_.format = {.reasoning = *find_reasoning_format("qwen3", ""),
                       .begins_in_reasoning = false,
                       .tools = *find_tool_format("hermes", "")};
  }
  std::unique_ptr<AnswerWriter> writer(const ChatRequest& request) {
    return make_answer_writer(request, tokenizer_,
                              {.id = "x-1", .created = 1, .model = "m", .call_seed = 77});
  }
  static RequestOutput output_of(const std::string& text) {
    RequestOutput output;
    CompletionOutput& answer = output.outputs.emplace_back();
    answer.text = text;
    answer.token_ids = byte_tokens(text);
    answer.token_ids.push_back(TokenId{263});
    answer.finish_reason = FinishReason::stop;
    return output;
  }
  Json whole(const ChatRequest& request, const std::string& text) {
    const auto size = static_cast<int64_t>(text.size() + 1);
    return Json::parse(writer(request)->whole(
        std::vector{output_of(text)},
        {.usage = {.prompt_tokens = 2, .completion_tokens = size, .cached_tokens = 0}}));
  }

  // All that a client puts together from a stream whose texts end at the cuts.
  Json streamed(const ChatRequest& request, const std::string& text,
                const std::vector<size_t>& cuts) {
    const auto out = writer(request);
    Json message = {{"content", ""}, {"reasoning_content", ""}, {"tool_calls", Json::array()}};
    Json last;
    const auto take = [&](const ChoiceEvent& event) {
      for (const std::string& line : out->events(event, nullptr, nullptr)) {
        last = Json::parse(line)["choices"][0];
        add_delta(message, last["delta"]);
      }
    };
    size_t begin = 0;
    for (const size_t end : cuts) {
      const std::string piece = text.substr(begin, end - begin);
      take({.text = piece, .token_ids = byte_tokens(piece)});
      begin = end;
    }
    const std::string rest = text.substr(begin);
    take({.text = rest, .token_ids = byte_tokens(rest), .finish_reason = FinishReason::stop});
    message["finish_reason"] = last["finish_reason"];
    message["usage"] = Json::parse(out->usage_event({}, {}, 0))["usage"];
    return message;
  }

  static void add_delta(Json& message, const Json& delta) {
    for (const char* key : {"content", "reasoning_content"})
      if (delta.contains(key))
        message[key] = message[key].get<std::string>() + delta[key].get<std::string>();
    if (!delta.contains("tool_calls")) return;
    std::set<size_t> seen;
    for (const Json& call : delta["tool_calls"]) {
      const auto index = call["index"].get<size_t>();
      EXPECT_TRUE(seen.insert(index).second) << "one entry for each call in a delta";
      Json& calls = message["tool_calls"];
      if (index == calls.size()) {
        calls.push_back(call);  // the first has id, type and name
        EXPECT_TRUE(call.contains("id") && call["function"].contains("name"));
      } else {
        EXPECT_FALSE(call.contains("id") || call["function"].contains("name"));
        Json& arguments = calls.at(index)["function"]["arguments"];
        arguments = arguments.get<std::string>() + call["function"]["arguments"].get<std::string>();
      }
    }
  }

  Tokenizer tokenizer_ = std::move(*Tokenizer::create(testing::tiny_byte_spec()));
  ChatRequest request_;
};

TEST_F(ChatAnswer, Whole) {
  const Json json = whole(request_, "<think>\nWhy?\n</think>\n\n" + kCall + "\n" + kCall);
  const Json& choice = json["choices"][0];
  const Json& message = choice["message"];
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_EQ(message["reasoning_content"], "Why?");
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  ASSERT_EQ(message["tool_calls"].size(), 2u);
  const Json& call = message["tool_calls"][0];
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["function"].dump(), R"({"name":"f","arguments":"{\"a\": \"é\"}"})");
  EXPECT_TRUE(call["id"].get<std::string>().starts_with("call_"));
  EXPECT_NE(call["id"], message["tool_calls"][1]["id"]);
  EXPECT_EQ(json["usage"]["completion_tokens_details"]["reasoning_tokens"],
            std::string("<think>\nWhy?\n</think>").size());
}

TEST_F(ChatAnswer, WithoutCallsOrReasoning) {
  const Json choice = whole(request_, "Hi")["choices"][0];
  EXPECT_EQ(choice["message"].dump(),
            R"({"role":"assistant","content":"Hi","refusal":null,"reasoning_content":null})");
  EXPECT_EQ(choice["finish_reason"], "stop");
  ChatRequest hidden = request_;
  hidden.include_reasoning = false;
  const Json json = whole(hidden, "<think>a</think>Hi");
  EXPECT_EQ(json["choices"][0]["message"].dump(),
            R"({"role":"assistant","content":"Hi","refusal":null})");
  EXPECT_EQ(json["usage"]["completion_tokens_details"]["reasoning_tokens"], 16);
}

TEST_F(ChatAnswer, AStreamSaysWhatTheWholeSays) {
  std::mt19937 random(3);
  for (const std::string& text :
       std::vector<std::string>{"<think>\nWhy?\n</think>\n\nI call.\n" + kCall + kCall + " ok",
                                kCall, std::string("Hi"), "<think>" + kCall, std::string(),
                                "<tool_call>{no}</tool_call>", std::string("  <think")}) {
    const Json all = whole(request_, text);
    const Json& expected = all["choices"][0];
    for (int round = 0; round < 60; ++round) {
      std::vector<size_t> cuts;
      for (size_t i = 1; i < text.size(); ++i) {
        const bool is_inside = (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
        if (!is_inside && (round == 0 || random() % 5 == 0)) cuts.push_back(i);
      }
      Json got = streamed(request_, text, cuts);
      for (Json& call : got["tool_calls"]) call.erase("index");
      const Json& message = expected["message"];
      EXPECT_EQ(got["content"], message["content"].is_null() ? Json("") : message["content"]);
      EXPECT_EQ(got["reasoning_content"],
                message["reasoning_content"].is_null() ? Json("") : message["reasoning_content"]);
      EXPECT_EQ(got["tool_calls"], message.value("tool_calls", Json::array()));
      EXPECT_EQ(got["finish_reason"], expected["finish_reason"]);
      EXPECT_EQ(got["usage"]["completion_tokens_details"],
                all["usage"]["completion_tokens_details"]);
    }
  }
}

TEST_F(ChatAnswer, SaysNothingWhileACallMayCome) {
  const auto out = writer(request_);
  EXPECT_EQ(out->events({.text = "<tool"}, nullptr, nullptr).size(), 1u);  // the role
  EXPECT_TRUE(out->events({.text = "_call>"}, nullptr, nullptr).empty());
  const Usage usage;
  EXPECT_EQ(out->events({.text = "{"}, &usage, nullptr).size(), 1u);
  const auto last = out->events({.finish_reason = FinishReason::length}, nullptr, nullptr);
  ASSERT_EQ(last.size(), 1u);
  const Json choice = Json::parse(last[0])["choices"][0];
  EXPECT_EQ(choice["delta"]["content"], "<tool_call>{");
  EXPECT_EQ(choice["finish_reason"], "length");
}

TEST_F(ChatAnswer, TokensAndLogprobsAreToldOnce) {
  request_.return_token_ids = true;
  request_.params.logprobs = 0;
  const auto out = writer(request_);
  const ChoiceEvent event{.text = kCall,
                          .token_ids = {TokenId{65}},
                          .logprobs = {{TokenId{65}, {{TokenId{65}, -0.5f, 1}}}},
                          .finish_reason = FinishReason::stop};
  const auto lines = out->events(event, nullptr, nullptr);
  ASSERT_EQ(lines.size(), 2u);
  const Json first = Json::parse(lines[0])["choices"][0];
  const Json second = Json::parse(lines[1])["choices"][0];
  EXPECT_EQ(first["token_ids"].size(), 1u);
  EXPECT_TRUE(second["token_ids"].empty());
  EXPECT_FALSE(first["logprobs"].is_null());
  EXPECT_TRUE(second["logprobs"].is_null());
  EXPECT_TRUE(first["finish_reason"].is_null());
  EXPECT_EQ(second["finish_reason"], "tool_calls");
}

// Tokens whose text is held back by a stop string are not counted before it comes.
TEST_F(ChatAnswer, ReasoningTokensAreNeverMoreThanTokens) {
  ReadAnswer answer(request_.format, Detokenizer(tokenizer_, true));
  (void)answer.read("", byte_tokens("<think>ab"), false);
  EXPECT_EQ(answer.reasoning_tokens(), 0);
  (void)answer.read("<think>ab", {}, false);
  EXPECT_EQ(answer.reasoning_tokens(), 9);
  (void)answer.read("", byte_tokens("</think>xyz"), true);
  EXPECT_EQ(answer.reasoning_tokens(), 9);
}

TEST(CallId, DiffersAndHasTheShapeThatTemplatesTake) {
  std::set<std::string> ids, short_ids;
  for (int choice = 0; choice < 50; ++choice)
    for (size_t call = 0; call < 50; ++call) {
      ids.insert(call_id(5, choice, call, false));
      short_ids.insert(call_id(5, choice, call, true));
    }
  EXPECT_EQ(ids.size(), 2500u);
  EXPECT_EQ(short_ids.size(), 2500u);
  for (const std::string& id : short_ids) {
    EXPECT_EQ(id.size(), 9u);
    EXPECT_TRUE(std::all_of(id.begin(), id.end(), [](unsigned char c) { return std::isalnum(c); }));
  }
  EXPECT_EQ(call_id(5, 0, 1, false), call_id(5, 0, 1, false));
  EXPECT_NE(call_id(5, 0, 1, false), call_id(6, 0, 1, false));
}

}  // namespace
}  // namespace octavo
