#include "server/access.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "http/host.h"

namespace octavo {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

bool is_address(const std::string& host) {
  std::array<unsigned char, 16> parsed;
  return inet_pton(AF_INET, host.c_str(), parsed.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), parsed.data()) == 1;
}

std::string machine_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? lower(name.data()) : "";
}

bool contains(const std::vector<std::string>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// "Authorization: Bearer KEY", or the headers that other APIs use.
std::string_view key_of(const http::Request& request) {
  if (const std::string* value = http::find_header(request.headers, "authorization")) {
    constexpr std::string_view kScheme = "bearer ";
    if (value->size() > kScheme.size() && lower(value->substr(0, kScheme.size())) == kScheme)
      return std::string_view(*value).substr(kScheme.size());
    return {};
  }
  for (const std::string_view name : {"x-api-key", "api-key"})
    if (const std::string* value = http::find_header(request.headers, name)) return *value;
  return {};
}

// All are compared, so that the time does not tell which one it was.
bool is_one_of(std::string_view given, const std::vector<std::string>& secrets) {
  bool found = false;
  for (const std::string& secret : secrets) found |= same_secret(given, secret);
  return found;
}

ApiError forbidden(std::string message, std::string code) {
  return {.status = 403,
          .message = std::move(message),
          .type = "permission_error",
          .code = std::move(code)};
}

std::string join(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

bool same_secret(std::string_view given, std::string_view secret) {
  unsigned different = given.size() != secret.size();
  for (size_t i = 0; i < given.size(); ++i)
    different |= static_cast<unsigned>(
        static_cast<unsigned char>(given[i]) ^
        static_cast<unsigned char>(secret.empty() ? 0 : secret[i % secret.size()]));
  return different == 0;
}

Access::Access(AccessOptions options, std::string own_host)
    : options_(std::move(options)), own_host_(lower(own_host)) {
  for (std::string& host : options_.allowed_hosts) host = lower(host);
}

std::optional<ApiError> Access::check(const http::Request& request, RouteAccess access) const {
  // Probes call whatever name they were given, and learn nothing but whether the server lives.
  if (access != RouteAccess::open)
    if (auto error = check_host(request)) return error;
  if (auto error = check_origin(request)) return error;
  return check_key(request, access);
}

// A page of a foreign site can make a browser call a name that was pointed at this machine, but not
// an address. It knows no key: who has one is known, whatever name a proxy passes on.
std::optional<ApiError> Access::check_host(const http::Request& request) const {
  if (own_host_.empty() || contains(options_.allowed_hosts, "*")) return {};
  const std::string* header = http::find_header(request.headers, "host");
  if (!header) return {};  // HTTP/1.0, which no browser speaks
  if (has_key(request)) return {};
  const auto parsed = http::parse_host(*header);
  const std::string host = parsed ? parsed->name : "";
  if (host == "localhost" || host == own_host_ || is_address(host) || host == machine_name() ||
      contains(options_.allowed_hosts, host))
    return {};
  return forbidden(fmt::format("the Host header names '{}', which is not this server; "
                               "--allowed-hosts adds names, and requests with a key may use any",
                               host),
                   "host_not_allowed");
}

std::optional<ApiError> Access::check_origin(const http::Request& request) const {
  const std::string* origin = http::find_header(request.headers, "origin");
  if (!origin || allows_origin(*origin)) return {};
  const std::string* host = http::find_header(request.headers, "host");
  if (host && lower(*origin) == (request.is_tls ? "https://" : "http://") + lower(*host)) return {};
  return forbidden(fmt::format("pages of '{}' may not call this server; --allowed-origins adds "
                               "origins",
                               *origin),
                   "origin_not_allowed");
}

bool Access::allows_origin(std::string_view origin) const {
  return contains(options_.cors.allowed_origins, "*") ||
         contains(options_.cors.allowed_origins, origin);
}

bool Access::has_key(const http::Request& request) const {
  const std::string_view key = key_of(request);
  return is_one_of(key, options_.api_keys) || is_one_of(key, options_.admin_api_keys);
}

std::optional<ApiError> Access::check_key(const http::Request& request, RouteAccess access) const {
  if (access == RouteAccess::open) return {};
  if (access == RouteAccess::metrics && options_.metrics_public) return {};
  const bool is_admin = is_one_of(key_of(request), options_.admin_api_keys);
  if (access == RouteAccess::admin && options_.admin_api_keys.empty())
    return forbidden(
        "this route is for who runs the server and is closed; start the server with "
        "--admin-api-key to open it",
        "admin_key_not_configured");
  if (is_admin) return {};
  if (access != RouteAccess::admin &&
      (!has_keys() || is_one_of(key_of(request), options_.api_keys)))
    return {};
  return ApiError{
      .status = 401,
      .message = access == RouteAccess::admin
                     ? "this route needs the admin key: Authorization: Bearer KEY"
                     : "a key is missing or wrong; send the header Authorization: Bearer KEY",
      .type = "authentication_error",
      .code = "invalid_api_key"};
}

http::Headers Access::cors_headers(const http::Request& request) const {
  const std::string* origin = http::find_header(request.headers, "origin");
  if (!origin || !allows_origin(*origin)) return {};
  http::Headers headers = {
      {"Access-Control-Allow-Origin", *origin},
      {"Vary", "Origin"},
      {"Access-Control-Expose-Headers", "X-Request-Id, Retry-After, X-Octavo-Warnings"}};
  if (options_.cors.allow_credentials)
    headers.push_back({"Access-Control-Allow-Credentials", "true"});
  return headers;
}

http::Response Access::preflight(const http::Request& request) const {
  http::Response response{.status = 204, .content_type = {}, .headers = cors_headers(request)};
  if (response.headers.empty()) return response;
  response.headers.push_back({"Access-Control-Allow-Methods", join(options_.cors.allowed_methods)});
  const std::string* asked = http::find_header(request.headers, "access-control-request-headers");
  const bool any = contains(options_.cors.allowed_headers, "*");
  response.headers.push_back({"Access-Control-Allow-Headers",
                              any && asked ? *asked : join(options_.cors.allowed_headers)});
  response.headers.push_back({"Access-Control-Max-Age", "600"});
  return response;
}

}  // namespace octavo
