#include "text/ordered_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

TEST(OrderedJson, AsTheLibraryReadsIt) {
  for (const char* text :
       {"{}", "[]", R"({"b":1,"a":[{"d":null,"c":-2},[],"x",true,1.5,18446744073709551615]})",
        R"({"a":1,"b":2,"a":{"c":3}})", R"({"":"\u00e9\n\u0000"})", R"([[[[{"a":[{}]}]]]])"})
    EXPECT_EQ(parse_ordered_json(text).dump(), Json::parse(text).dump()) << text;
}

// The library takes minutes for these.
TEST(OrderedJson, ManyMembers) {
  constexpr size_t kMembers = 300'000;
  std::string text = "{";
  for (size_t i = 0; i < kMembers; ++i)
    text += "\"" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  text.back() = '}';
  const Json json = parse_ordered_json(text);
  EXPECT_EQ(json.size(), kMembers);
  EXPECT_EQ(json.back(), kMembers - 1);
}

}  // namespace
}  // namespace octavo
