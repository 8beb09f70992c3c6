#include "bench/markup.h"

#include "text/utf8.h"

namespace octavo {
namespace {

constexpr std::string_view kReplacement = "\uFFFD";

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '&':
      out += "&amp;";
      return;
    case '<':
      out += "&lt;";
      return;
    case '>':
      out += "&gt;";
      return;
    case '"':
      out += "&quot;";
      return;
    case '\'':
      out += "&#39;";
      return;
    default:
      break;
  }
  const bool is_control = static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t';
  if (is_control || c == '\x7f') {
    out += kReplacement;
  } else {
    out += c;
  }
}

}  // namespace

std::string escape_markup(std::string_view text) {
  std::string valid, out;
  Utf8Repair repair;
  repair.push(text, valid);
  repair.finish(valid);
  for (const char c : valid) append_escaped(out, c);
  return out;
}

}  // namespace octavo
