#include "http/response_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <boost/beast/http/status.hpp>
#include <ctime>

namespace octavo::http {
namespace {

bool has_no_body(int status) { return status == 204 || status == 304 || status < 200; }

void add(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  for (const char c : value) head += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  head += "\r\n";
}

std::string_view reason(int status) {
  const auto text =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  return {text.data(), text.size()};
}

}  // namespace

std::string response_text(Response response, Framing framing, bool keep_alive) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason(response.status));
  add(text, "Date", fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}", fmt::gmtime(std::time(nullptr))));
  if (!response.content_type.empty()) add(text, "Content-Type", response.content_type);
  for (const Header& header : response.headers) add(text, header.name, header.value);
  if (framing == Framing::chunked)
    add(text, "Transfer-Encoding", "chunked");
  else if (framing != Framing::to_close && !has_no_body(response.status))
    add(text, "Content-Length", std::to_string(response.body.size()));
  add(text, "Connection", keep_alive ? "keep-alive" : "close");
  text += "\r\n";
  if (framing != Framing::length || has_no_body(response.status)) return text;
  // A body may take hundreds of megabytes, and mostly has room for the head.
  return std::move(response.body.insert(0, text));
}

std::string chunk_text(std::string_view data) {
  return fmt::format("{:x}\r\n{}\r\n", data.size(), data);
}

}  // namespace octavo::http
