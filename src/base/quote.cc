#include "base/quote.h"

#include <fmt/format.h>

#include <iterator>

namespace octavo {

namespace {

void append_escaped(std::string_view text, std::string& out) {
  for (const char c : text) {
    const bool plain = c >= ' ' && c <= '~' && c != '\'' && c != '\\';
    if (plain) {
      out += c;
    } else {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
}

}  // namespace

std::string escape(std::string_view text, size_t max_bytes) {
  std::string out;
  append_escaped(text.substr(0, max_bytes), out);
  if (text.size() > max_bytes) out += "...";
  return out;
}

std::string quote(std::string_view text, size_t max_bytes) {
  std::string out = "'";
  append_escaped(text.substr(0, max_bytes), out);
  out += text.size() > max_bytes ? "'..." : "'";
  return out;
}

}  // namespace octavo
