#include "http/message.h"

#include <algorithm>
#include <cctype>

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

}  // namespace octavo::http
