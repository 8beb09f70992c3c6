#include "server/api_answer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "server/api_logprobs.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr TokenId kHello{259}, kW{260}, kBos{262}, kEos{263};

TokenId byte_token(unsigned char byte) { return TokenId{byte}; }

std::vector<TokenId> byte_tokens(std::string_view text) {
  std::vector<TokenId> ids;
  for (const char byte : text) ids.push_back(byte_token(static_cast<unsigned char>(byte)));
  return ids;
}

// The chosen token at rank 1 with -0.1, and another one.
TokenLogprobs place(TokenId chosen, TokenId other = byte_token('z')) {
  return {chosen, {{chosen, -0.1f, 1}, {other, -2.5f, 2}}};
}

RequestOutput output_of(std::vector<TokenId> prompt, std::vector<std::vector<TokenId>> answers,
                        const Tokenizer& tokenizer) {
  RequestOutput output;
  output.prompt_token_ids = std::move(prompt);
  output.prompt_logprobs.emplace_back();
  for (size_t i = 1; i < output.prompt_token_ids.size(); ++i)
    output.prompt_logprobs.emplace_back(place(output.prompt_token_ids[i]));
  output.seed = 42;
  output.num_cached_tokens = 1;
  for (auto& ids : answers) {
    CompletionOutput& answer = output.outputs.emplace_back();
    answer.index = static_cast<int>(output.outputs.size()) - 1;
    answer.text = tokenizer.decode(ids, true);
    for (const TokenId id : ids) answer.logprobs.push_back(place(id));
    answer.token_ids = std::move(ids);
    answer.finish_reason = FinishReason::stop;
  }
  return output;
}

// Of what is told in one event.
std::string event_of(AnswerWriter& writer, const ChoiceEvent& event, const Usage* usage,
                     const RequestOutput* prompt) {
  const auto events = writer.events(event, usage, prompt);
  EXPECT_EQ(events.size(), 1u);
  return events.empty() ? "{}" : events.front();
}

class ApiAnswer : public ::testing::Test {
 protected:
  template <class Request>
  std::unique_ptr<AnswerWriter> writer(const Request& request) {
    return make_answer_writer(request, tokenizer_,
                              {.id = "x-1", .created = 123, .model = "org/name"});
  }
  template <class Request>
  Json whole(const Request& request, const std::vector<RequestOutput>& outputs) {
    return Json::parse(writer(request)->whole(outputs, kTimings));
  }

  static constexpr Timings kTimings = {
      .queue_s = 0.5,
      .prefill_s = 0.25,
      .decode_s = 2,
      .usage = {.prompt_tokens = 6, .completion_tokens = 5, .cached_tokens = 1}};
  Tokenizer tokenizer_ = std::move(*Tokenizer::create(testing::tiny_byte_spec()));
};

TEST_F(ApiAnswer, WholeChat) {
  ChatRequest request;
  const Json json = whole(request, {output_of({kBos, kHello}, {{kHello, kEos}}, tokenizer_)});
  EXPECT_EQ(json["id"], "x-1");
  EXPECT_EQ(json["object"], "chat.completion");
  EXPECT_EQ(json["created"], 123);
  EXPECT_EQ(json["model"], "org/name");
  EXPECT_EQ(json["choices"].dump(),
            R"([{"index":0,"message":{"role":"assistant","content":"hello","refusal":null},)"
            R"("logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}])");
  EXPECT_EQ(json["usage"].dump(), R"({"prompt_tokens":6,"completion_tokens":5,"total_tokens":11,)"
                                  R"("prompt_tokens_details":{"cached_tokens":1}})");
  EXPECT_EQ(json["seed"], 42);
  EXPECT_EQ(json["timings"].dump(),
            R"({"queue_ms":500.0,"cache_n":1,"prompt_n":5,"prompt_ms":250.0,)"
            R"("prompt_per_token_ms":50.0,"prompt_per_second":20.0,"predicted_n":5,)"
            R"("predicted_ms":2000.0,"predicted_per_token_ms":500.0,"predicted_per_second":2.0})");
  EXPECT_FALSE(json.contains("error"));
  // Clients of vLLM read them as attributes.
  EXPECT_TRUE(json.at("prompt_token_ids").is_null() && json.at("prompt_logprobs").is_null());
}

TEST_F(ApiAnswer, GuessesWhereTokensMayBeGuessed) {
  Timings timings = kTimings;
  timings.usage.drafts = {.tokens = 7, .accepted = 4};
  ChatRequest request;
  const std::vector<RequestOutput> outputs = {output_of({kBos}, {{kHello}}, tokenizer_)};
  const Json json = Json::parse(writer(request)->whole(outputs, timings));
  EXPECT_EQ(json["usage"]["completion_tokens_details"].dump(),
            R"({"accepted_prediction_tokens":4,"rejected_prediction_tokens":3})");
  EXPECT_EQ(json["timings"]["draft_n"], 7);
  EXPECT_EQ(json["timings"]["draft_n_accepted"], 4);
  const Json last = Json::parse(writer(request)->usage_event(timings.usage, timings, 1));
  EXPECT_EQ(last["usage"], json["usage"]);
  EXPECT_EQ(last["timings"]["draft_n_accepted"], 4);
}

TEST_F(ApiAnswer, ChatLogprobsAndIds) {
  ChatRequest request;
  request.params.logprobs = 1;
  request.return_token_ids = true;
  const Json json = whole(request, {output_of({kBos, kHello}, {{kHello}}, tokenizer_)});
  const Json& entry = json["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(entry["token"], "hello");
  EXPECT_TRUE(json["choices"][0]["logprobs"].at("refusal").is_null());
  EXPECT_EQ(entry["bytes"].dump(), "[104,101,108,108,111]");
  EXPECT_EQ(entry["logprob"].get<float>(), -0.1f);
  ASSERT_EQ(entry["top_logprobs"].size(), 1u);
  EXPECT_EQ(entry["top_logprobs"][0]["token"], "hello");
  EXPECT_EQ(entry["top_logprobs"][0]["logprob"], entry["logprob"]);
  EXPECT_EQ(json["prompt_token_ids"].dump(), "[262,259]");
  EXPECT_EQ(json["choices"][0]["token_ids"].dump(), "[259]");
  request.params.logprobs = 0;
  EXPECT_TRUE(whole(request,
                    {output_of({kBos}, {{kHello}},
                               tokenizer_)})["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
                  .empty());
}

TEST_F(ApiAnswer, ChatEvents) {
  ChatRequest request;
  const auto out = writer(request);
  const RequestOutput prompt = output_of({kBos}, {}, tokenizer_);
  const std::string first = event_of(*out, {.text = "a\n\"b"}, nullptr, &prompt);
  EXPECT_EQ(first,
            R"({"id":"x-1","object":"chat.completion.chunk","created":123,"model":"org/name",)"
            R"("system_fingerprint":null,"choices":[{"index":0,"delta":{"role":"assistant",)"
            R"("content":"a\n\"b","refusal":null},"logprobs":null,"finish_reason":null}],)"
            R"("seed":42})");
  const Json last = Json::parse(
      event_of(*out, {.text = "c", .finish_reason = FinishReason::stop, .stop_reason = "END"},
               nullptr, nullptr));
  EXPECT_EQ(last["choices"].dump(),
            R"([{"index":0,"delta":{"content":"c"},"logprobs":null,"finish_reason":"stop",)"
            R"("stop_reason":"END"}])");
  EXPECT_FALSE(last.contains("usage") || last.contains("seed"));
  const Json cut = Json::parse(
      event_of(*out, {.choice = 1, .finish_reason = FinishReason::abort}, nullptr, nullptr));
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "abort");
  EXPECT_EQ(cut["choices"][0]["delta"].dump(),
            R"({"role":"assistant","content":"","refusal":null})");
}

// B05.
TEST_F(ApiAnswer, UsageOnlyWhereItIsAskedFor) {
  ChatRequest request;
  const Usage usage = {.prompt_tokens = 3, .completion_tokens = 1};
  EXPECT_FALSE(Json::parse(event_of(*writer(request), {}, nullptr, nullptr)).contains("usage"));
  request.include_usage = true;
  const auto out = writer(request);
  EXPECT_TRUE(Json::parse(event_of(*out, {}, nullptr, nullptr)).at("usage").is_null());
  EXPECT_EQ(Json::parse(event_of(*out, {}, &usage, nullptr))["usage"]["total_tokens"], 4);
  const Json last = Json::parse(out->usage_event(usage, kTimings, 42));
  EXPECT_EQ(last["choices"].dump(), "[]");
  EXPECT_EQ(last["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(last["seed"], 42);
  EXPECT_EQ(last["object"], "chat.completion.chunk");
  EXPECT_TRUE(last.contains("timings"));
}

// B92.
TEST_F(ApiAnswer, ChoicesOfManyPromptsAreNumbered) {
  CompletionRequest request;
  request.params.n = 2;
  const auto make = [&](char a, char b) {
    return output_of({kBos}, {{byte_token(a)}, {byte_token(b)}}, tokenizer_);
  };
  const Json json = whole(request, {make('a', 'b'), make('c', 'd')});
  EXPECT_EQ(json["object"], "text_completion");
  std::string texts;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(json["choices"][i]["index"], i);
    EXPECT_EQ(json["choices"][i]["seed"], 42);
    texts += json["choices"][i]["text"];
  }
  EXPECT_EQ(texts, "abcd");
  const Json event = Json::parse(
      event_of(*writer(request), {.prompt_index = 1, .choice = 1, .text = "d"}, nullptr, nullptr));
  EXPECT_EQ(event["choices"].dump(),
            R"([{"index":3,"text":"d","logprobs":null,"finish_reason":null}])");
}

TEST_F(ApiAnswer, CompletionLogprobs) {
  CompletionRequest request;
  request.params.logprobs = 2;
  std::vector<TokenId> ids = {kHello};
  for (const TokenId id : byte_tokens("\xF0\x9F\x98\x80")) ids.push_back(id);
  ids.insert(ids.end(), {kW, kEos});
  const Json json = whole(request, {output_of({kBos}, {ids}, tokenizer_)})["choices"][0];
  EXPECT_EQ(json["text"], "hello\xF0\x9F\x98\x80 w");
  const Json& logprobs = json["logprobs"];
  EXPECT_EQ(logprobs["tokens"].dump(),
            R"(["hello","bytes:\\xf0","bytes:\\x9f","bytes:\\x98","bytes:\\x80"," w","<eos>"])");
  EXPECT_EQ(logprobs["text_offset"].dump(), "[0,5,5,5,5,6,8]");
  EXPECT_EQ(logprobs["top_logprobs"][0].size(), 2u);
  for (size_t i = 0; i < ids.size(); ++i)  // lm-eval decides by equality
    EXPECT_EQ(logprobs["top_logprobs"][i][logprobs["tokens"][i].get<std::string>()],
              logprobs["token_logprobs"][i]);
}

TEST_F(ApiAnswer, EchoOfTextAndOfIds) {
  CompletionRequest request;
  request.params.logprobs = 1;
  request.echo = true;
  RequestOutput output =
      output_of({kBos, kHello, byte_token(0xC3), byte_token(0xA9)}, {{kW}}, tokenizer_);
  output.prompt = "hello\u00E9";
  const Json text = whole(request, {output})["choices"][0];
  EXPECT_EQ(text["text"], "hello\u00E9 w");
  EXPECT_EQ(text["logprobs"]["tokens"].dump(),
            R"(["<bos>","hello","bytes:\\xc3","bytes:\\xa9"," w"])");
  EXPECT_EQ(text["logprobs"]["text_offset"].dump(), "[0,0,5,5,6]");
  EXPECT_TRUE(text["logprobs"]["token_logprobs"][0].is_null());
  EXPECT_TRUE(text["logprobs"]["top_logprobs"][0].is_null());
  EXPECT_EQ(text["logprobs"]["token_logprobs"].size(), 5u);
  EXPECT_TRUE(text.at("prompt_logprobs").is_null());

  // What was sent as ids comes back whole, whether the answer shows control tokens or not.
  output.prompt.reset();
  const Json with_special = whole(request, {output})["choices"][0];
  EXPECT_EQ(with_special["text"], "<bos>hello\u00E9 w");
  EXPECT_EQ(with_special["logprobs"]["text_offset"].dump(), "[0,5,10,10,11]");

  output.outputs[0] = {.text = "", .token_ids = {}, .logprobs = {}, .stop_reason = {}};
  const Json scores_only = whole(request, {output})["choices"][0];
  EXPECT_EQ(scores_only["text"], "<bos>hello\u00E9");
  EXPECT_EQ(scores_only["logprobs"]["tokens"].size(), 4u);
  EXPECT_EQ(scores_only["finish_reason"], "length");
}

TEST_F(ApiAnswer, ControlTokensThatATextSpellsHaveTheirPlaceInIt) {
  CompletionRequest request;
  request.params.logprobs = 1;
  request.echo = true;
  RequestOutput output = output_of({kBos, kBos, kHello}, {{kW}}, tokenizer_);
  output.prompt = "<bos>hello";
  const Json choice = whole(request, {output})["choices"][0];
  EXPECT_EQ(choice["text"], "<bos>hello w");
  // Which of the two is the server's own cannot be told and does not matter.
  EXPECT_EQ(choice["logprobs"]["text_offset"].dump(), "[0,5,5,10]");
}

TEST_F(ApiAnswer, PromptLogprobsInVllmsShape) {
  CompletionRequest request;
  request.return_prompt_logprobs = request.return_token_ids = true;
  const auto output = output_of({kBos, kHello}, {{kW}}, tokenizer_);
  const Json choice = whole(request, {output})["choices"][0];
  EXPECT_EQ(choice["prompt_token_ids"].dump(), "[262,259]");
  EXPECT_TRUE(choice["prompt_logprobs"][0].is_null());
  EXPECT_EQ(choice["prompt_logprobs"][1]["259"]["rank"], 1);
  EXPECT_EQ(choice["prompt_logprobs"][1]["259"]["decoded_token"], "hello");
  EXPECT_EQ(choice["prompt_logprobs"][1]["259"]["logprob"].get<float>(), -0.1f);

  const auto out = writer(request);
  const Json first = Json::parse(event_of(*out, {.text = "a"}, nullptr, &output));
  EXPECT_EQ(first["choices"][0]["prompt_logprobs"], choice["prompt_logprobs"]);
  EXPECT_EQ(first["choices"][0]["prompt_token_ids"], choice["prompt_token_ids"]);
}

TEST_F(ApiAnswer, TokensThatLookAlikeKeepTheMoreProbable) {
  // <think> is spelled by a user-defined token; another token may print the same.
  const TokenLogprobs alike = {
      byte_token('z'), {{kHello, -0.5f, 1}, {kHello, -0.7f, 2}, {byte_token('z'), -9999.0f, 9}}};
  CompletionLogprobs logprobs({tokenizer_}, true);
  logprobs.add(std::vector{alike});
  const Json json = logprobs.take();
  EXPECT_EQ(json["top_logprobs"][0].size(), 2u);
  EXPECT_EQ(json["top_logprobs"][0]["hello"], -0.5);
  EXPECT_EQ(json["top_logprobs"][0]["z"], -9999.0);
}

TEST_F(ApiAnswer, TokensMayBeNamedByTheirIds) {
  CompletionRequest completion;
  completion.params.logprobs = 1;
  completion.return_tokens_as_token_ids = true;
  const auto output = output_of({kBos}, {{kHello, byte_token(0xC3)}}, tokenizer_);
  const Json logprobs = whole(completion, {output})["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"].dump(), R"(["token_id:259","token_id:195"])");
  EXPECT_TRUE(logprobs["top_logprobs"][0].contains("token_id:259"));
  ChatRequest chat;
  chat.params.logprobs = 1;
  chat.return_tokens_as_token_ids = true;
  const Json entry = whole(chat, {output})["choices"][0]["logprobs"]["content"][0];
  EXPECT_EQ(entry["token"], "token_id:259");
  EXPECT_EQ(entry["top_logprobs"][0]["token"], "token_id:259");
  EXPECT_EQ(entry["bytes"].dump(), "[104,101,108,108,111]");
}

TEST_F(ApiAnswer, NothingIsNotANumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  CompletionLogprobs logprobs({tokenizer_}, true);
  logprobs.add(std::vector{TokenLogprobs{kHello, {{kHello, -infinity, 1}}}});
  EXPECT_EQ(logprobs.take()["token_logprobs"][0], -9999.0);
}

TEST_F(ApiAnswer, InvalidBytesBecomeReplacementCharacters) {
  ChatRequest request;
  const std::string event = event_of(*writer(request), {.text = "a\x80"}, nullptr, nullptr);
  EXPECT_EQ(Json::parse(event)["choices"][0]["delta"]["content"], "a\uFFFD");
}

// Events cut anywhere, joined, are the whole answer.
struct Joined {
  std::string text;
  Json finish_reason = nullptr;
  Json logprobs = Json::object(), token_ids = Json::array();
};

void join(const Json& choice, Joined& to) {
  const bool is_chat = choice.contains("delta");
  to.text += (is_chat ? choice["delta"]["content"] : choice["text"]).get<std::string>();
  if (!choice["finish_reason"].is_null()) to.finish_reason = choice["finish_reason"];
  for (const auto& id : choice["token_ids"]) to.token_ids.push_back(id);
  for (const auto& [name, list] : choice["logprobs"].items())
    for (const auto& entry : list) to.logprobs[name].push_back(entry);
}

std::vector<ChoiceEvent> cut(const CompletionOutput& output, int prompt_index, std::mt19937& rng) {
  std::vector<ChoiceEvent> events;
  size_t token = 0, byte = 0;
  while (events.empty() || token < output.token_ids.size()) {
    ChoiceEvent& event = events.emplace_back();
    event.prompt_index = prompt_index;
    event.choice = output.index;
    const size_t count = std::min<size_t>(rng() % 3, output.token_ids.size() - token);
    for (size_t i = 0; i < count; ++i, ++token) {
      event.token_ids.push_back(output.token_ids[token]);
      event.logprobs.push_back(output.logprobs[token]);
    }
    size_t end = token == output.token_ids.size() ? output.text.size()
                                                  : byte + rng() % (output.text.size() - byte + 1);
    while (end < output.text.size() && (output.text[end] & 0xC0) == 0x80) ++end;
    event.text = output.text.substr(byte, end - byte);
    byte = end;
  }
  events.back().finish_reason = output.finish_reason;
  return events;
}

template <class Request>
void expect_events_equal_whole(const Request& request, const Tokenizer& tokenizer, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<RequestOutput> outputs;
  for (int i = 0; i < 2; ++i) {
    std::vector<std::vector<TokenId>> answers(2);
    for (auto& ids : answers)
      for (size_t k = rng() % 20; k > 0; --k)
        ids.push_back(TokenId{static_cast<int32_t>(rng() % 265)});
    outputs.push_back(output_of({kBos, kHello, byte_token(0xC3)}, answers, tokenizer));
  }
  const auto out = make_answer_writer(request, tokenizer, {.id = "x", .model = "m"});
  std::map<int, Joined> joined;
  for (int i = 0; i < 2; ++i)
    for (const CompletionOutput& output : outputs[static_cast<size_t>(i)].outputs) {
      const auto events = cut(output, i, rng);
      for (const ChoiceEvent& event : events) {
        const RequestOutput* prompt =
            &event == &events.front() ? &outputs[static_cast<size_t>(i)] : nullptr;
        const Json json = Json::parse(event_of(*out, event, nullptr, prompt));
        join(json["choices"][0], joined[json["choices"][0]["index"]]);
      }
    }
  const Json whole = Json::parse(
      make_answer_writer(request, tokenizer, {.id = "x", .model = "m"})->whole(outputs, {}));
  ASSERT_EQ(whole["choices"].size(), 4u);
  for (const Json& choice : whole["choices"]) {
    const Joined& parts = joined[choice["index"]];
    EXPECT_EQ(parts.text, choice.contains("text") ? choice["text"] : choice["message"]["content"]);
    EXPECT_EQ(parts.finish_reason, choice["finish_reason"]);
    EXPECT_EQ(parts.token_ids, choice["token_ids"]);
    for (const auto& [name, list] : choice["logprobs"].items())
      EXPECT_EQ(list.empty() ? Json(nullptr) : list, parts.logprobs.value(name, Json(nullptr)));
  }
}

TEST_F(ApiAnswer, EventsJoinedAreTheWholeAnswer) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    CompletionRequest completion;
    completion.params.n = 2;
    completion.params.logprobs = 1;
    completion.return_token_ids = true;
    completion.echo = seed % 2 == 0;
    completion.params.skip_special_tokens = seed % 3 != 0;
    expect_events_equal_whole(completion, tokenizer_, seed);
    ChatRequest chat;
    chat.params.n = 2;
    chat.params.logprobs = 1;
    chat.return_token_ids = true;
    expect_events_equal_whole(chat, tokenizer_, seed);
  }
}

TEST(ApiError, Shapes) {
  EXPECT_EQ(to_json({.message = "no \"x\"", .param = "x", .code = "unsupported_parameter"}),
            R"({"error":{"message":"no \"x\"","type":"invalid_request_error","param":"x",)"
            R"("code":"unsupported_parameter"}})");
  EXPECT_EQ(to_json({.message = "a\xFF"}),
            "{\"error\":{\"message\":\"a\uFFFD\",\"type\":\"invalid_request_error\","
            "\"param\":null,\"code\":null}}");
  const http::Response response = to_response({.status = 429, .message = "m", .retry_after_s = 3});
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(*http::find_header(response.headers, "retry-after"), "3");
}

TEST(ApiError, OfTheEngine) {
  const std::tuple<ErrorCode, int, std::string_view> cases[] = {
      {ErrorCode::invalid_argument, 400, ""},
      {ErrorCode::unsupported, 400, "unsupported"},
      {ErrorCode::context_overflow, 400, "context_length_exceeded"},
      {ErrorCode::resource_exhausted, 400, "resource_exhausted"},
      {ErrorCode::template_error, 400, "template_error"},
      {ErrorCode::numeric_error, 500, "numeric_error"},
      {ErrorCode::io_error, 500, "io_error"},
      {ErrorCode::cancelled, 503, "cancelled"},
  };
  for (const auto& [code, status, name] : cases) {
    const ApiError error = to_api_error({code, "why"});
    EXPECT_EQ(error.status, status);
    EXPECT_EQ(error.code, name);
    EXPECT_EQ(error.message, "why");
    EXPECT_EQ(error.type, status < 500 ? "invalid_request_error" : "server_error");
  }
}

TEST(ApiError, AFullQueueIsToBeTriedAgain) {
  const ApiError error = to_submit_error({ErrorCode::resource_exhausted, "full"});
  EXPECT_EQ(error.status, 429);
  EXPECT_GT(error.retry_after_s, 0);
  EXPECT_EQ(to_submit_error({ErrorCode::context_overflow, "long"}).status, 400);
}

}  // namespace
}  // namespace octavo
