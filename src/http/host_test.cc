#include "http/host.h"

#include <gtest/gtest.h>

namespace octavo::http {
namespace {

using namespace std::string_literals;

std::string parsed(std::string_view text) {
  const auto host = parse_host(text);
  return host ? host->name + "|" + host->port : "none";
}

TEST(Host, IsANameOrAnAddressWithOrWithoutAPort) {
  EXPECT_EQ(parsed("localhost"), "localhost|");
  EXPECT_EQ(parsed("LocalHost:8000"), "localhost|8000");
  EXPECT_EQ(parsed("127.0.0.1:80"), "127.0.0.1|80");
  EXPECT_EQ(parsed("[::1]"), "::1|");
  EXPECT_EQ(parsed("[FE80::1]:443"), "fe80::1|443");
  EXPECT_EQ(parsed("my_host-1.example.:"), "my_host-1.example.|");
  EXPECT_EQ(parsed("a%2Db"), "a%2db|");
  EXPECT_EQ(parsed(""), "|");
}

TEST(Host, IsNothingElse) {
  for (const char* bad : {"localhost:80@evil.example",
                          "user@localhost",
                          "[::1].evil.example",
                          "[::1",
                          "::1",
                          "[]",
                          "[localhost]",
                          "[::1]80",
                          "[::1]:80:90",
                          "localhost:80:90",
                          "localhost:8o",
                          "localhost:-1",
                          "localhost:123456",
                          "a b",
                          "localhost/x",
                          "localhost?x",
                          "localhost#x",
                          "a\\b",
                          "a%2",
                          "a%",
                          "a%zz",
                          "localhost, evil.example",
                          "\"a\"",
                          "a\x80"})
    EXPECT_EQ(parsed(bad), "none") << bad;
  EXPECT_EQ(parsed("local\0host"s), "none");
  EXPECT_EQ(parsed("[::1\0]"s), "none");
}

}  // namespace
}  // namespace octavo::http
