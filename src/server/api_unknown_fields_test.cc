#include "server/api_unknown_fields.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

ApiResult<ApiWarnings> check(std::string_view body, Endpoint endpoint, bool strict = false) {
  ApiWarnings warnings;
  const ApiLimits limits = {.vocab_size = 100, .max_model_len = 64, .strict_fields = strict};
  OCTAVO_TRY(const BodyFields fields, parse_body(body));
  OCTAVO_CHECK_OK(check_unknown_fields(fields, endpoint, limits, warnings));
  return warnings;
}

std::string only_warning(std::string_view body, Endpoint endpoint) {
  const auto warnings = check(body, endpoint);
  return warnings && warnings->size() == 1 ? warnings->front() : "";
}

TEST(UnknownFields, AreNamedIfTheyAreCloseToAKnownOne) {
  EXPECT_EQ(only_warning(R"({"temprature":1})", kChat),
            "'temprature' is not known and has no effect; did you mean temperature?");
  const std::pair<std::string, std::string> cases[] = {{"max_token", "max_tokens"},
                                                       {"maxTokens", "max_tokens"},
                                                       {"topP", "top_p"},
                                                       {"max-tokens", "max_tokens"},
                                                       {"Stream", "stream"}};
  for (const auto& [wrong, meant] : cases) {
    const std::string told = only_warning("{\"" + wrong + "\":1}", kCompletions);
    EXPECT_TRUE(told.ends_with("did you mean " + meant + "?")) << wrong << told;
  }
}

TEST(UnknownFields, OfOtherRoutesHaveNoEffectHere) {
  EXPECT_EQ(only_warning(R"({"input":"a"})", kChat),
            "input is a field of other routes and has no effect here");
}

TEST(UnknownFields, TheRestIsForOthers) {
  for (const char* body : {R"({"x_client_version":"7"})", R"({"temprature":null})",
                           R"({"temperature":1,"messages":[]})", "{}"})
    EXPECT_TRUE(check(body, kChat)->empty()) << body;
}

TEST(UnknownFields, AreBounded) {
  std::string body = "{";
  for (int i = 0; i < 10000; ++i) {
    const auto letter = [](int k) { return std::string(1, static_cast<char>('a' + k % 26)); };
    body += "\"temperatur" + letter(i) + letter(i / 26) + letter(i / 676) + "\":1,";
  }
  const auto warnings = check(body + "\"" + std::string(100000, 't') + "\":1}", kChat);
  EXPECT_EQ(warnings->size(), 32U);
}

TEST(UnknownFields, AreRefusedWhereTheServerIsStrict) {
  for (const char* body : {R"({"temprature":1})", R"({"x_client_version":"7"})"}) {
    const auto refused = check(body, kChat, /*strict=*/true);
    ASSERT_FALSE(refused) << body;
    EXPECT_EQ(refused.error().status, 400);
    EXPECT_EQ(refused.error().code, "unknown_parameter");
  }
  EXPECT_EQ(check(R"({"temprature":1})", kChat, true).error().param, "temprature");
  EXPECT_TRUE(check(R"({"temperature":1,"x":null})", kChat, /*strict=*/true));
}

}  // namespace
}  // namespace octavo
