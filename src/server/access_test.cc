#include "server/access.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

http::Request request_with(http::Headers headers) {
  headers.push_back({"Host", "localhost:8000"});
  return {.method = "GET",
          .path = "/v1/models",
          .query = {},
          .headers = std::move(headers),
          .body = {},
          .remote_address = {}};
}

int status(const Access& access, const http::Request& request, RouteAccess route) {
  const auto error = access.check(request, route);
  return error ? error->status : 200;
}

TEST(Access, ComparesSecretsWhole) {
  EXPECT_TRUE(same_secret("key", "key"));
  for (const char* wrong : {"", "ke", "keyy", "Key", "keykey"})
    EXPECT_FALSE(same_secret(wrong, "key")) << wrong;
  EXPECT_FALSE(same_secret("x", ""));
}

TEST(Access, KeysComeInSeveralHeaders) {
  const Access access({.api_keys = {"one", "two"}}, "127.0.0.1");
  for (const http::Header& header :
       {http::Header{"Authorization", "Bearer one"}, http::Header{"authorization", "bearer two"},
        http::Header{"X-Api-Key", "two"}, http::Header{"api-key", "one"}})
    EXPECT_EQ(status(access, request_with({header}), RouteAccess::key), 200) << header.name;
  for (const char* wrong : {"Bearer three", "Bearer ", "one", "Basic one"})
    EXPECT_EQ(status(access, request_with({{"Authorization", wrong}}), RouteAccess::key), 401);
  EXPECT_EQ(status(access, request_with({}), RouteAccess::key), 401);
  EXPECT_EQ(status(access, request_with({}), RouteAccess::open), 200);
  EXPECT_EQ(status(access, request_with({}), RouteAccess::metrics), 401);
}

TEST(Access, AdminRoutesNeedTheirOwnKey) {
  const Access closed({.api_keys = {"one"}}, "127.0.0.1");
  const http::Request with_key = request_with({{"Authorization", "Bearer one"}});
  EXPECT_EQ(status(closed, with_key, RouteAccess::admin), 403);
  const Access open({.api_keys = {"one"}, .admin_api_keys = {"boss"}}, "127.0.0.1");
  EXPECT_EQ(status(open, with_key, RouteAccess::admin), 401);
  EXPECT_EQ(status(open, request_with({{"Authorization", "Bearer boss"}}), RouteAccess::admin),
            200);
}

TEST(Access, ForeignHostsAreRefused) {
  const Access access({.allowed_hosts = {"llm.example"}}, "127.0.0.1");
  const auto with_host = [&](const char* host) {
    http::Request request = request_with({});
    request.headers = {{"Host", host}};
    return status(access, request, RouteAccess::key);
  };
  for (const char* own : {"localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000", "10.0.0.7",
                          "llm.example:443"})
    EXPECT_EQ(with_host(own), 200) << own;
  for (const char* foreign : {"evil.example", "127.0.0.1.evil.example", "localhost.evil.example",
                              "localhost:80@evil.example", "[::1].evil.example"})
    EXPECT_EQ(with_host(foreign), 403) << foreign;
}

http::Request from_host(const char* host, http::Headers headers = {}) {
  http::Request request = request_with(std::move(headers));
  request.headers.back().value = host;
  return request;
}

TEST(Access, WhoHasAKeyMayUseAnyHost) {
  const Access access({.api_keys = {"one"}, .admin_api_keys = {"boss"}}, "127.0.0.1");
  for (const char* key : {"Bearer one", "Bearer boss"})
    EXPECT_EQ(status(access, from_host("llm.example", {{"Authorization", key}}), RouteAccess::key),
              200);
  for (const char* wrong : {"Bearer two", ""})
    EXPECT_EQ(
        status(access, from_host("llm.example", {{"Authorization", wrong}}), RouteAccess::key),
        403);
  const Access without({}, "127.0.0.1");
  EXPECT_EQ(
      status(without, from_host("llm.example", {{"Authorization", "Bearer x"}}), RouteAccess::key),
      403);
}

TEST(Access, ProbesMayUseAnyHost) {
  const Access access({.allowed_hosts = {"llm.example"}}, "127.0.0.1");
  EXPECT_EQ(status(access, from_host("octavo.pod.cluster.local"), RouteAccess::open), 200);
  EXPECT_EQ(status(access, from_host("octavo.pod.cluster.local"), RouteAccess::key), 403);
}

TEST(Access, ForeignOriginsAreRefusedAndOwnOnesAreNot) {
  const Access access({.cors = {.allowed_origins = {"https://app.example"}}}, "127.0.0.1");
  const auto with_origin = [&](const char* origin) {
    return status(access, request_with({{"Origin", origin}}), RouteAccess::open);
  };
  EXPECT_EQ(with_origin("https://app.example"), 200);
  EXPECT_EQ(with_origin("http://localhost:8000"), 200);
  for (const char* foreign :
       {"http://evil.example", "null", "http://localhost:9000", "https://localhost:8000"})
    EXPECT_EQ(with_origin(foreign), 403) << foreign;
  EXPECT_TRUE(access.cors_headers(request_with({{"Origin", "http://evil.example"}})).empty());
  EXPECT_FALSE(access.cors_headers(request_with({{"Origin", "https://app.example"}})).empty());
}

}  // namespace
}  // namespace octavo
