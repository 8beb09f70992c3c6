#include "server/body_work.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace octavo {
namespace {

size_t values_of(std::string_view body) { return weigh_body(body).num_values; }

// Values and keys, as the parser makes them.
size_t count(const nlohmann::ordered_json& value) {
  size_t n = 1;
  for (const auto& part : value) n += value.is_structured() ? count(part) : 0;
  return n + (value.is_object() ? value.size() : 0);
}

TEST(BodyWork, CountsNoFewerValuesThanThereAre) {
  for (const char* body :
       {"{}", "[]", "7", R"({"a":1})", R"({"a":[1,2,3],"b":{"c":[]}})", "[[[[]]]]", "[[1],[2],[3]]",
        R"([{"a":{}},{"a":{"b":"c,d:e[f{g"}}])", R"({"a":"\"[,:\\","b":"\\\""})"}) {
    const auto parsed = nlohmann::ordered_json::parse(body);
    EXPECT_GE(values_of(body), count(parsed)) << body;
    EXPECT_LE(values_of(body), 2 * count(parsed) + 1) << body;
  }
}

TEST(BodyWork, TextHasNoValues) {
  EXPECT_EQ(values_of(R"("a,b:c[d{e\",\"")"), 1u);
  EXPECT_EQ(values_of("\"never ends, [[[["), 1u);
  EXPECT_EQ(values_of("\"cut off\\"), 1u);
}

TEST(BodyWork, NothingOverflows) {
  EXPECT_GT(working_bytes({.num_bytes = size_t{1} << 40, .num_values = size_t{1} << 40}),
            kept_bytes({.num_bytes = size_t{1} << 40, .num_values = size_t{1} << 40}));
}

}  // namespace
}  // namespace octavo
