#include "http/message.h"

#include <algorithm>
#include <cctype>

#include "http/hex.h"

namespace octavo::http {

const std::string* find_header(const Headers& headers, std::string_view name) {
  const auto same = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  for (const Header& header : headers)
    if (std::equal(header.name.begin(), header.name.end(), name.begin(), name.end(), same))
      return &header.value;
  return nullptr;
}

std::string decoded_name(std::string_view part) {
  std::string out;
  for (size_t i = 0; i < part.size(); ++i) {
    const int byte = escaped_byte(part.substr(i));
    out += byte < 0 ? part[i] : static_cast<char>(byte);
    if (byte >= 0) i += 2;
  }
  return out;
}

}  // namespace octavo::http
