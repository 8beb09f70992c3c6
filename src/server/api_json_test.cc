#include "server/api_json.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace octavo {
namespace {

std::string repeat(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

void expect_refused(const std::string& body, std::string_view param, std::string_view words) {
  const auto fields = parse_body(body);
  ASSERT_FALSE(fields) << body.substr(0, 100);
  EXPECT_EQ(fields.error().status, 400);
  EXPECT_EQ(fields.error().param, param) << body.substr(0, 100);
  EXPECT_NE(fields.error().message.find(words), std::string::npos) << fields.error().message;
}

TEST(ApiJson, KeepsValuesAndTheirOrder) {
  const auto fields = parse_body(R"( {"b":[1,-2,2.5,"x",null,true],"a":{"z":{},"y":[]}} )");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->at("b").dump(), R"([1,-2,2.5,"x",null,true])");
  EXPECT_EQ(fields->at("a").dump(), R"({"z":{},"y":[]})");
}

// B90.
TEST(ApiJson, RefusesWhatIsNoJson) {
  expect_refused("", "", "empty");
  expect_refused("   ", "", "unexpected end");
  expect_refused("[]", "", "must be a JSON object");
  expect_refused("7", "", "must be a JSON object");
  expect_refused("null", "", "must be a JSON object");
  expect_refused(R"({"a":1)", "a", "unexpected end");
  expect_refused(R"({"a":"x)", "a", "not JSON");
  expect_refused(R"({"a":1}})", "", "not JSON");
  expect_refused(R"({"a":1}x)", "", "not JSON");
  expect_refused("\xEF\xBB\xBF{}", "", "byte order mark");
  expect_refused(R"({"a":NaN})", "a", "not JSON");
  expect_refused(R"({"a":01})", "a", "not JSON");
  expect_refused(R"({'a':1})", "", "not JSON");
  expect_refused("{\"a\":\"\xC3\x28\"}", "a", "not JSON");
  expect_refused("{\"a\":\"\xFF\"}", "a", "not JSON");
  expect_refused("{\"a\":\"x\ny\"}", "a", "not JSON");
  expect_refused(R"({"a":"\ud800"})", "a", "not JSON");
  expect_refused(R"({"a":"\udc00x"})", "a", "not JSON");
  expect_refused(R"({"a":1e400})", "a", "too large");
  expect_refused(R"({"a":[-1e999]})", "a", "too large");
  expect_refused(R"({"a":1,"a":2})", "a", "twice");
  expect_refused(R"({"a":{"b":[{"c":1,"c":1}]}})", "a", "twice");
  EXPECT_TRUE(parse_body(R"({"a":"\ud83d\ude00"})"));
}

TEST(ApiJson, EndsWithTheBody) {
  using namespace std::string_literals;
  expect_refused("{\"a\":1}\0"s, "", "U+0000 at byte 8");
  expect_refused("{\"a\":1}\0\0 x"s, "", "U+0000");
  expect_refused("{\"a\":\"x\0y\"}"s, "", "U+0000");
  expect_refused("\0"s, "", "U+0000");
  EXPECT_TRUE(parse_body(R"({"a":"x\u0000y"})"));
}

// B87: also in fields that nobody reads.
TEST(ApiJson, RefusesDepth) {
  const auto nested = [](size_t depth) { return repeat("[", depth) + repeat("]", depth); };
  EXPECT_TRUE(parse_body(R"({"a":)" + nested(60) + "}"));
  EXPECT_TRUE(parse_body(R"({"a":)" + nested(63) + "}"));
  for (const size_t depth : {64, 1000, 100'000, 5'000'000})
    expect_refused(R"({"unknown":)" + nested(depth) + "}", "unknown", "64 levels");
  expect_refused(R"({"a":)" + repeat(R"({"b":)", 100'000), "a", "64 levels");
  expect_refused(repeat("[", 1'000'000), "", "must be a JSON object");
}

TEST(ApiJson, RefusesTooManyValues) {
  expect_refused(R"({"a":[1)" + repeat(",1", kMaxBodyValues) + "]}", "a", "values");
  expect_refused(R"({"a":[[])" + repeat(",[]", kMaxBodyValues) + "]}", "a", "values");
  EXPECT_TRUE(parse_body(R"({"a":[1)" + repeat(",1", kMaxBodyValues / 2) + "]}"));
}

TEST(ApiJson, ManyKeysTakeLinearTime) {
  std::string body = R"({"a":{"k":0)";
  for (int i = 0; i < 200'000; ++i) body += fmt::format(",\"{}\":{{}}", i);
  const auto fields = parse_body(body + "}}");
  ASSERT_TRUE(fields);
  EXPECT_EQ(fields->at("a").size(), 200'001u);
}

TEST(ApiJson, LinesAreUtf8) { EXPECT_EQ(to_line({{"a", "x\ny\xFF"}}), "{\"a\":\"x\\ny\uFFFD\"}"); }

}  // namespace
}  // namespace octavo
