// GET over libcurl, for a hub: the token goes to the hub's own host and nowhere else.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace octavo::hub {

// Scheme, host and port of a URL: who gets to see the token.
struct Origin {
  std::string scheme, host, port;

  bool operator==(const Origin&) const = default;
  bool is_loopback() const;
};

// Errors: invalid_argument (no URL of http or https, or one with a user's name in it).
Result<Origin> origin_of(const std::string& url);

struct GetRequest {
  std::string url;
  std::string token = {};    // for the origin of `url` alone; empty: none
  std::string ca_file = {};  // whom to trust, PEM; empty: whom the system trusts
  int64_t from = 0;          // first byte wanted

  // Once, when the answer is one with a body that was asked for (200 or 206), before its first
  // bytes: whether to go on. first: where the body begins in the file, 0 if the server gave all.
  std::function<Result<void>(int64_t first)> on_begin = {};
  std::function<Result<void>(std::string_view bytes)> on_bytes = {};
  double time_limit_s = 0;  // of each answer as a whole; 0: as long as bytes come
};

struct GetAnswer {
  int status = 0;
  std::string next = {};  // the URL of the next page of a list (Link: rel="next")
};

// How a transfer can fail short of an answer.
struct GetError {
  enum class Kind : uint8_t { unreachable, interrupted, refused };
  Kind kind;  // refused: an error of ours or of the callbacks, which trying again does not mend
  Error error;
};

// Follows redirects, a few; never from https to http. Statuses other than 200 and 206 come back
// without their body.
tl::expected<GetAnswer, GetError> get(const GetRequest& request);

}  // namespace octavo::hub
