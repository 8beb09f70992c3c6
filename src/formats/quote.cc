#include "formats/quote.h"

#include <fmt/format.h>

#include <iterator>

namespace octavo {

std::string quote(std::string_view text, size_t max_bytes) {
  std::string out = "'";
  for (const char c : text.substr(0, max_bytes)) {
    const bool plain = c >= ' ' && c <= '~' && c != '\'' && c != '\\';
    if (plain) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += text.size() > max_bytes ? "'..." : "'";
  return out;
}

}  // namespace octavo
