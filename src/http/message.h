// An HTTP request that has been read, and an answer that is to be written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::http {

struct Header {
  std::string name;
  std::string value;
};
using Headers = std::vector<Header>;

// The value of the first header of this name, whatever its case; nullptr: there is none.
const std::string* find_header(const Headers& headers, std::string_view name);

struct Request {
  std::string method;  // "POST"
  // "/v1/models/a b", percent-decoded but for %2F and %25: an escaped slash is no slash, or the
  // rules on paths of a proxy in front would be passed by. Always begins with a slash.
  std::string path;
  std::string query;  // after the question mark, as it was sent
  Headers headers;    // in their order; values without spaces around them
  std::string body;
  std::string remote_address;  // "127.0.0.1"; of a Unix socket "unix"
  bool is_tls = false;
  double received_s = 0;  // steady clock, when its first byte came
};

// What is left to decode in a part of Request::path that is a name.
std::string decoded_name(std::string_view part);

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers = {};  // beside content type, length, date and connection
  std::string body = {};
  bool close = false;  // the connection ends after it
};

}  // namespace octavo::http
