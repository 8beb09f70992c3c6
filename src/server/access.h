// Who may call what: keys, and the Host and Origin of browsers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"
#include "server/api_error.h"
#include "server/serve_options.h"

namespace octavo {

enum class RouteAccess : uint8_t {
  open,     // /health and /ready
  key,      // with --api-key: one of the keys
  metrics,  // as key, but for --metrics-public
  admin,    // one of --admin-api-key; refused if there is none
};

class Access {
 public:
  // own_host: where the server listens; empty: on a Unix socket, where no Host is checked.
  Access(AccessOptions options, std::string own_host);

  // Nothing: may go on. 401 without a valid key, 403 for a foreign Host (without a valid key) or
  // Origin, and for admin routes when there is no admin key. Open routes take any Host.
  std::optional<ApiError> check(const http::Request& request, RouteAccess access) const;

  // Headers that let a browser of an allowed origin read the answer; none without one.
  http::Headers cors_headers(const http::Request& request) const;
  // The answer to OPTIONS with Access-Control-Request-Method.
  http::Response preflight(const http::Request& request) const;

  bool has_keys() const { return !options_.api_keys.empty(); }

 private:
  std::optional<ApiError> check_host(const http::Request& request) const;
  std::optional<ApiError> check_origin(const http::Request& request) const;
  std::optional<ApiError> check_key(const http::Request& request, RouteAccess access) const;
  bool has_key(const http::Request& request) const;
  bool allows_origin(std::string_view origin) const;

  AccessOptions options_;
  std::string own_host_;
};

// Compares in a time that depends on the length of `given` alone.
bool same_secret(std::string_view given, std::string_view secret);

}  // namespace octavo
