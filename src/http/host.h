// The Host header, taken apart (RFC 9110, 7.2).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace octavo::http {

struct Host {
  std::string name;  // in lower case; of an IPv6 address without its brackets
  std::string port;  // digits; empty: none
};

// Nothing: the text is no host, alone or with a port. Programs that guess at such a text guess
// differently.
std::optional<Host> parse_host(std::string_view text);

}  // namespace octavo::http
