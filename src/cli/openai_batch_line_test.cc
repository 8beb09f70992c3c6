#include "cli/openai_batch_line.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace octavo::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kLine =
    R"({"custom_id": "q", "method": "POST", "url": "/v1/chat/completions", "body": {"z": 1, "a": 2}})";

TEST(OpenAiBatchLine, IsKnownByItsUrlOrBody) {
  EXPECT_EQ(is_openai_batch_line(kLine), true);
  EXPECT_EQ(is_openai_batch_line(R"({"url": "", "body": 1})"), true);
  EXPECT_EQ(is_openai_batch_line(R"({"custom_id": "q", "url": "/v1/completions"})"), true);
  EXPECT_EQ(is_openai_batch_line(R"({"prompt": "a", "custom_id": "q"})"), false);
  for (const std::string_view other : {R"({"custom_id": "q"})", "", "[]", "text", "{"})
    EXPECT_EQ(is_openai_batch_line(other), std::nullopt) << other;
}

TEST(OpenAiBatchLine, KeepsTheOrderOfTheBody) {
  const auto parsed = parse_openai_line(kLine, {});
  ASSERT_TRUE(parsed.line) << parsed.line.error().message;
  EXPECT_EQ(parsed.line->url, "/v1/chat/completions");
  EXPECT_EQ(parsed.line->body, R"({"z":1,"a":2})");
  EXPECT_EQ(parsed.custom_id, "q");
}

// Each key was once compared with all before it.
TEST(OpenAiBatchLine, ManyKeysAreReadInOneGo) {
  std::string body = R"({"model":"m")";
  for (int i = 0; i < 300'000; ++i) body += fmt::format(R"(,"key {}":0)", i);
  body += '}';
  const auto parsed =
      parse_openai_line(R"({"custom_id":"q","url":"/v1/completions","body":)" + body + "}", {});
  ASSERT_TRUE(parsed.line) << parsed.line.error().message;
  EXPECT_EQ(parsed.line->body, body);
}

TEST(OpenAiBatchLine, ALengthIsGivenWhereTheBodyHasNone) {
  const auto body_with = [](const std::string& url, const std::string& body) {
    const Json line = {{"custom_id", "q"}, {"url", url}, {"body", Json::parse(body)}};
    return Json::parse(parse_openai_line(line.dump(), 9).line->body);
  };
  EXPECT_EQ(body_with("/v1/completions", "{}")["max_tokens"], 9);
  EXPECT_EQ(body_with("/v1/completions", R"({"max_tokens": 2})")["max_tokens"], 2);
  EXPECT_FALSE(
      body_with("/v1/chat/completions", R"({"max_completion_tokens": 2})").contains("max_tokens"));
  EXPECT_FALSE(body_with("/v1/embeddings", "{}").contains("max_tokens"));
}

TEST(OpenAiBatchLine, RefusesTheRest) {
  struct Case {
    std::string text, words;
  };
  for (const auto& [text, words] : std::vector<Case>{
           {"text", "not a JSON object"},
           {"{\"url\": \"\xff\"}", "not UTF-8 at byte"},
           {R"({"url": "/v1/completions", "body": {}})", "needs custom_id"},
           {R"({"custom_id": 1, "url": "/v1/completions", "body": {}})", "custom_id must be"},
           {R"({"custom_id": "q", "body": {}})", "needs url"},
           {R"({"custom_id": "q", "url": "/v1/completions"})", "needs body"},
           {R"({"custom_id": "q", "url": "/metrics", "body": {}})", "/v1/chat/completions"},
           {R"({"custom_id": "q", "url": "/v1/completions", "body": []})", "body must be"},
           {R"({"custom_id": "q", "url": "/v1/completions", "body": {}, "method": "GET"})",
            "method"},
           {R"({"custom_id": "q", "url": "/v1/completions", "body": {"stream": true}})", "stream"},
           {R"({"custom_id": "q", "url": "/v1/completions", "body": {"a": 1, "a": 2}})", "twice"},
           {R"({"custom_id": "q", "url": "/v1/completions", "body": {}, "x": 1})", "'x'"},
       }) {
    const auto parsed = parse_openai_line(text, {});
    ASSERT_FALSE(parsed.line) << text;
    EXPECT_EQ(parsed.line.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(parsed.line.error().message.find(words), std::string::npos)
        << parsed.line.error().message;
  }
}

TEST(OpenAiBatchLine, AResultIsKnownAgain) {
  const ResultHead head{12, 0xabc};
  const Json id = "a \"quoted\" name\n" + std::string(500, 'x');
  const OpenAiResult good = openai_result(
      head, id,
      {.headers = {{"X-Request-Id", "r-1"}}, .body = "{\"usage\":\n{\"completion_tokens\":7}}\n"});
  const OpenAiResult bad = openai_result(head, id, {.status = 404, .body = "{\"error\":{}}"});
  const OpenAiResult none =
      openai_result(head, id, Error{ErrorCode::invalid_argument, "not a JSON object"});
  EXPECT_EQ(good.tokens, 7);
  EXPECT_FALSE(good.error);
  EXPECT_EQ(bad.error, ErrorCode::invalid_argument);
  const std::string begin = kOpenAiFormat.head(head);
  EXPECT_EQ(begin, R"({"id":"batch_req_12_0000000000000abc")");
  for (const OpenAiResult* result : {&good, &bad, &none}) {
    ASSERT_TRUE(result->text.starts_with(begin));
    EXPECT_EQ(result->text.find('\n'), result->text.size() - 1);
    EXPECT_EQ(kOpenAiFormat.error_of(result->text.substr(begin.size(), 200)), result->error);
    const Json json = Json::parse(result->text);
    EXPECT_EQ(json["custom_id"], id);
    EXPECT_EQ(json["response"].is_null(), result == &none);
    EXPECT_EQ(json["error"].is_null(), result != &none);
  }
  EXPECT_EQ(Json::parse(good.text)["response"]["request_id"], "r-1");
  EXPECT_EQ(Json::parse(bad.text)["response"]["status_code"], 404);
  EXPECT_EQ(Json::parse(none.text)["error"]["message"], "line 12: not a JSON object");
}

}  // namespace
}  // namespace octavo::cli
