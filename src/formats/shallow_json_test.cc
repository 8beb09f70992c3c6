#include "formats/shallow_json.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

using namespace std::string_view_literals;

TEST(ShallowJson, NoticesDepth) {
  EXPECT_FALSE(parse_shallow_json("[[1]]", 2).too_deep);
  EXPECT_TRUE(parse_shallow_json("[[[1]]]", 2).too_deep);
  EXPECT_TRUE(parse_shallow_json("[1", 2).root.is_discarded());
}

TEST(ShallowJson, EndsWithTheText) {
  for (const std::string_view text : {"{}\0"sv, "{}\0{}"sv, "\0"sv, "{\"a\":\0 1}"sv})
    EXPECT_TRUE(parse_shallow_json(text, 2).root.is_discarded());
}

TEST(ShallowJson, NoticesRepeatedKeys) {
  const auto repeated = [](const char* text) { return parse_strict_json(text, 8).repeated_key; };
  EXPECT_EQ(repeated(R"({"a": 1, "b": 2, "a": 3})"), "a");
  EXPECT_EQ(repeated(R"([{"a": {"b": 1, "\u0062": 2}}])"), "b");
  EXPECT_EQ(repeated(R"({"a": {"b": 1}, "c": {"x": 0}, "a": 2})"), "a");
  EXPECT_FALSE(repeated(R"({"a": {"a": 1}, "b": {"a": {"a": 2}, "b": [{"a": 3}, {"a": 4}]}})"));
  EXPECT_FALSE(repeated(R"([{}, {"a": 1}, {"a": 1}])"));
}

}  // namespace
}  // namespace octavo
