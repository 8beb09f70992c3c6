#include "bench/serve_request.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

using http::CallEnd;
using http::CallResult;
using nlohmann::json;

RequestForm form_of(RequestOptions options) {
  auto form = RequestForm::make(options);
  EXPECT_TRUE(form);
  return *form;
}

json body_of(const RequestOptions& options, const Turn& turn) {
  const RequestForm form = form_of(options);
  DialogueSoFar so_far;
  return json::parse(form.body(*so_far.ask(turn, form), turn.output_tokens));
}

TEST(RequestForm, AsksForAStreamWithUsage) {
  EXPECT_EQ(body_of({.model = "m"}, {.text = "a \"b\"", .output_tokens = 7}),
            json::parse(R"({"model":"m","prompt":"a \"b\"","max_tokens":7,"temperature":0.0,
                            "stream":true,"stream_options":{"include_usage":true},
                            "ignore_eos":true})"));
}

TEST(RequestForm, SendsIdsOrWords) {
  const std::vector<TokenId> ids = {TokenId{0}, TokenId{1}};
  EXPECT_EQ(body_of({}, {.token_ids = ids})["prompt"], json::parse("[0,1]"));
  const Turn turn = {.token_ids = ids, .made_up = true};
  EXPECT_EQ(body_of({.token_ids = true}, turn)["prompt"], json::parse("[0,1]"));
  EXPECT_EQ(body_of({}, turn)["prompt"], "the of");
  EXPECT_EQ(body_of({.chat = true}, turn)["messages"],
            json::parse(R"([{"role":"user","content":"the of"}])"));
}

TEST(RequestForm, LetsExtraMembersWin) {
  const json body = body_of(
      {.extra_body = json::parse(R"({"ignore_eos":null,"max_tokens":3,"temperature":1,"x":[1]})")},
      {.text = "a", .output_tokens = 7});
  EXPECT_EQ(body["max_tokens"], 3);
  EXPECT_EQ(body["temperature"], 1);
  EXPECT_EQ(body["x"], json::parse("[1]"));
  EXPECT_FALSE(body.contains("ignore_eos"));
  for (const char* extra : {"[]", "1", R"({"prompt":"a"})", R"({"stream":false})"})
    EXPECT_FALSE(RequestForm::make({.extra_body = json::parse(extra)})) << extra;
}

TEST(DialogueSoFar, GrowsByWhatIsAnswered) {
  for (const bool chat : {false, true}) {
    const RequestForm form = form_of({.chat = chat});
    DialogueSoFar so_far;
    so_far.ask({.text = "one"}, form);
    so_far.hear(" two");
    EXPECT_EQ(json::parse(*so_far.ask({.text = "three"}, form)),
              chat ? json::parse(R"([{"role":"user","content":"one"},
                                     {"role":"assistant","content":" two"},
                                     {"role":"user","content":"three"}])")
                   : json("one two\nthree"));
  }
}

TEST(DialogueSoFar, RefusesWhatTheEndpointCannotTake) {
  DialogueSoFar so_far;
  EXPECT_FALSE(so_far.ask({.messages = "[]"}, form_of({})));
  EXPECT_FALSE(so_far.ask({.token_ids = {TokenId{1}}}, form_of({.chat = true})));
}

CallResult whole() {
  return {.end = CallEnd::answered, .status = 200, .content_type = "text/event-stream"};
}

TEST(AnswerReader, TakesTimesOfTokensAndCountsOfTheServer) {
  AnswerReader reader(true);
  reader.read(R"({"choices":[{"delta":{"role":"assistant","content":""}}]})", 1);
  reader.read(R"({"choices":[{"delta":{"content":""},"finish_reason":null}]})", 2);
  reader.read(R"({"choices":[{"delta":{"content":"a"}}]})", 3);
  reader.read(R"({"choices":[{"delta":{"content":""},"finish_reason":null}]})", 4);
  reader.read(R"({"choices":[{"delta":{"reasoning_content":"b"}}],"usage":null})", 5);
  reader.read(R"({"choices":[{"delta":{},"finish_reason":"length"}]})", 6);
  reader.read(R"({"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,
                  "prompt_tokens_details":{"cached_tokens":99}}})",
              7);
  reader.read("[DONE]", 8);
  EXPECT_EQ(reader.finish(whole()), "length");
  EXPECT_EQ(reader.text(), "ab");
  RequestRecord record;
  reader.fill(record);
  EXPECT_EQ(record.token_s, (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(record.output_tokens(), 5);
  EXPECT_EQ(record.prompt_tokens, 9);
  EXPECT_EQ(record.cached_tokens, 9);  // no more than there are
  EXPECT_DOUBLE_EQ(*record.tpot_s(), 2.0 / 4);
}

TEST(AnswerReader, CountsEventsOfAServerWithoutUsage) {
  AnswerReader reader(false);
  reader.read(R"({"choices":[{"text":"a"}]})", 1);
  reader.read(R"({"choices":[{"text":"b","finish_reason":"stop"}]})", 2);
  RequestRecord record = {.prompt_tokens = 3};
  reader.fill(record);
  EXPECT_FALSE(reader.has_usage());
  EXPECT_EQ(record.output_tokens(), 2);
  EXPECT_EQ(record.prompt_tokens, 3);
  EXPECT_EQ(reader.finish(whole()), "stop");
}

TEST(AnswerReader, KeepsAnAnswerThatWasDoneBeforeItsConnectionFailed) {
  AnswerReader reader(false);
  reader.read(R"({"choices":[{"text":"a"}]})", 1);
  reader.read("[DONE]", 2);
  CallResult call = whole();
  call.end = CallEnd::timed_out;
  EXPECT_EQ(reader.finish(call), "stop");
}

TEST(AnswerReader, TellsFailuresApart) {
  const auto kind = [](CallEnd end, int status, const char* event = nullptr,
                       const char* type = "text/event-stream") {
    AnswerReader reader(false);
    if (event) reader.read(event, 1);
    return reader.finish({.end = end, .status = status, .content_type = type});
  };
  const char* token = R"({"choices":[{"text":"a"}]})";
  EXPECT_EQ(kind(CallEnd::answered, 429), "status 429");
  EXPECT_EQ(kind(CallEnd::cut, 503), "status 503");
  EXPECT_EQ(kind(CallEnd::refused, 0), "refused");
  EXPECT_EQ(kind(CallEnd::unreachable, 0), "unreachable");
  EXPECT_EQ(kind(CallEnd::timed_out, 200, token), "timeout");
  EXPECT_EQ(kind(CallEnd::cut, 200, token), "cut stream");
  EXPECT_EQ(kind(CallEnd::answered, 200, token), "cut stream");
  EXPECT_EQ(kind(CallEnd::not_http, 0), "not HTTP");
  EXPECT_EQ(kind(CallEnd::cancelled, 200, token), "cancelled");
  EXPECT_EQ(kind(CallEnd::answered, 200, nullptr, "application/json"), "no stream");
  EXPECT_EQ(kind(CallEnd::answered, 200, R"({"error":{"message":"m"}})"), "error event");
  EXPECT_EQ(kind(CallEnd::answered, 200, "{"), "error event");
  EXPECT_EQ(kind(CallEnd::answered, 200, "[1]"), "error event");
}

// What came in this order, of a stream that ended as it should.
AnswerReader reader_of(const std::vector<const char*>& events) {
  AnswerReader reader(false);
  for (size_t i = 0; i < events.size(); ++i) reader.read(events[i], static_cast<double>(i));
  return reader;
}

TEST(AnswerReader, AStreamWithoutAnAnswerIsAFailure) {
  const char* opening = R"({"choices":[{"delta":{"role":"assistant","content":""}}]})";
  const char* usage = R"({"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}})";
  const std::vector<std::vector<const char*>> without = {
      {}, {"[DONE]"}, {opening}, {opening, "[DONE]"}, {usage, "[DONE]"}};
  for (const auto& events : without)
    EXPECT_EQ(reader_of(events).finish(whole()), "no answer") << events.size();
}

TEST(AnswerReader, AnAnswerOfNoTokensSaysWhyItEnded) {
  const char* end = R"({"choices":[{"text":"","finish_reason":"stop"}]})";
  EXPECT_EQ(reader_of({end, "[DONE]"}).finish(whole()), "stop");
  EXPECT_TRUE(reader_of({end, "[DONE]"}).has_reason());
}

TEST(AnswerReader, DoneStandsForAReasonWhereTextCame) {
  const char* token = R"({"choices":[{"text":"a"}]})";
  EXPECT_EQ(reader_of({token, "[DONE]"}).finish(whole()), "stop");
  EXPECT_FALSE(reader_of({token, "[DONE]"}).has_reason());
  EXPECT_EQ(reader_of({token}).finish(whole()), "cut stream");
  EXPECT_EQ(reader_of({token, R"({"error":{"message":"m"}})", "[DONE]"}).finish(whole()),
            "error event");
}

TEST(AnswerReader, CallsOfToolsAreAnswers) {
  const AnswerReader reader = reader_of(
      {R"({"choices":[{"delta":{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}}]})",
       R"({"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]}}]})",
       R"({"choices":[{"delta":{},"finish_reason":"tool_calls"}]})", "[DONE]"});
  EXPECT_EQ(reader.finish(whole()), "stop");
  RequestRecord record;
  reader.fill(record);
  EXPECT_EQ(record.token_s, (std::vector<double>{0, 1}));
}

TEST(AnswerReader, ACountOfZeroIsNoneWhereTextCame) {
  RequestRecord record;
  reader_of({R"({"choices":[{"text":"a"}],"usage":{"completion_tokens":0}})"}).fill(record);
  EXPECT_EQ(record.output_tokens(), 1);
}

TEST(AnswerReader, SaysWhatTheServerSaid) {
  const AnswerReader reader(false);
  CallResult call = {.end = CallEnd::answered, .status = 400};
  call.body = R"({"error":{"message":"too long"}})";
  EXPECT_EQ(reader.why(call), "'too long'");
  call.body = "<html>\n";
  EXPECT_EQ(reader.why(call), "'<html>\\x0a'");
}

TEST(AnswerReader, BearsWhateverAnEventHolds) {
  AnswerReader reader(true);
  for (const char* event :
       {R"({"choices":1,"usage":2})", R"({"choices":[1,null,{"delta":[],"text":5}]})",
        R"({"usage":{"prompt_tokens":-1,"completion_tokens":1e99,"prompt_tokens_details":7}})",
        R"({"choices":[{"delta":{"content":null},"finish_reason":3}]})"})
    reader.read(event, 1);
  RequestRecord record;
  reader.fill(record);
  EXPECT_EQ(record.output_tokens(), 0);
  EXPECT_EQ(reader.finish(whole()), "no answer");
}

}  // namespace
}  // namespace octavo
