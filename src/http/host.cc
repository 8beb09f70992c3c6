#include "http/host.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "http/hex.h"

namespace octavo::http {
namespace {

constexpr size_t kMaxPortDigits = 5;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// RFC 3986's unreserved characters and sub-delims.
bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) ||
         std::string_view("-._~!$&'()*+,;=").find(c) != std::string_view::npos;
}

bool is_registered_name(std::string_view name) {
  while (!name.empty()) {
    if (!is_name_char(name[0]) && escaped_byte(name) < 0) return false;
    name.remove_prefix(name[0] == '%' ? 3 : 1);
  }
  return true;
}

bool is_ipv6(const std::string& address) {
  std::array<unsigned char, 16> parsed;
  return address.find('\0') == std::string::npos &&
         inet_pton(AF_INET6, address.c_str(), parsed.data()) == 1;
}

bool is_port(std::string_view port) {
  return port.size() <= kMaxPortDigits && std::all_of(port.begin(), port.end(), is_digit);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

std::optional<Host> parse_host(std::string_view text) {
  const bool is_bracketed = text.starts_with('[');
  const size_t end = is_bracketed ? text.find(']') : std::min(text.find(':'), text.size());
  if (end == std::string_view::npos) return std::nullopt;
  Host host{.name = lower(text.substr(is_bracketed, end - is_bracketed)), .port = {}};
  std::string_view rest = text.substr(is_bracketed ? end + 1 : end);
  if (!(is_bracketed ? is_ipv6(host.name) : is_registered_name(host.name))) return std::nullopt;
  if (rest.empty()) return host;
  if (rest[0] != ':' || !is_port(rest.substr(1))) return std::nullopt;
  host.port = rest.substr(1);
  return host;
}

}  // namespace octavo::http
