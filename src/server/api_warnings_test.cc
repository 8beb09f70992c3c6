#include "server/api_warnings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace octavo {
namespace {

std::string header_of(const ApiWarnings& warnings) {
  http::Headers headers;
  add_warnings_header(warnings, headers);
  const std::string* value = http::find_header(headers, kWarningsHeader);
  return value ? *value : "";
}

TEST(Warnings, AreAListOfStringsInOneHeader) {
  EXPECT_EQ(header_of({}), "");
  EXPECT_EQ(header_of({"a, b; \"c\""}), R"(["a, b; \"c\""])");
  EXPECT_EQ(header_of({"one", "two"}), R"(["one","two"])");
}

// Names of fields are the client's: they may hold anything.
TEST(Warnings, AreSafeInAHeader) {
  const std::string value = header_of({"a\r\nSet-Cookie: x", "gr\u00fc\u00df", "\xff\x80 bytes"});
  EXPECT_TRUE(std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; }))
      << value;
  EXPECT_EQ(nlohmann::json::parse(value)[0], "a\r\nSet-Cookie: x");
}

TEST(Warnings, FitAProxysHeaders) {
  const std::string value = header_of(ApiWarnings(100, std::string(100, 'x')));
  EXPECT_LT(value.size(), 2500U);
  const auto told = nlohmann::json::parse(value);
  EXPECT_EQ(told.back(),
            "and " + std::to_string(101 - told.size()) + " more, which the server's log has");
  EXPECT_EQ(nlohmann::json::parse(header_of({std::string(5000, 'x')})).size(), 1U);
}

}  // namespace
}  // namespace octavo
