// Answers as bytes.
#pragma once

#include <string>
#include <string_view>

#include "http/message.h"

namespace octavo::http {

enum class Framing : uint8_t {
  length,    // Content-Length, and the body
  no_body,   // Content-Length, for HEAD
  chunked,   // chunks follow
  to_close,  // bytes follow until the connection closes
};

// Head, and the body with Framing::length. Control characters in header values become spaces.
std::string response_text(Response response, Framing framing, bool keep_alive);
std::string chunk_text(std::string_view data);

}  // namespace octavo::http
