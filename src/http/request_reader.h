// Bytes to requests, without sockets: fed as they come, cut anywhere.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "http/message.h"
#include "http/server.h"

namespace octavo::http {

class RequestReader {
 public:
  enum class State : uint8_t { head, body, complete, fault };

  explicit RequestReader(const ServerLimits& limits);
  ~RequestReader();

  // Takes bytes off the front of `inbox`, up to the end of the request at most.
  State feed(std::string& inbox);
  State state() const { return state_; }

  // From State::body on: all but the body.
  const Request& head() const { return request_; }
  bool expects_continue() const { return expects_continue_; }
  // With State::complete.
  Request take();
  bool keep_alive() const { return keep_alive_; }
  bool is_http10() const { return is_http10_; }

  // With State::fault.
  int status() const { return status_; }
  const std::string& why() const { return why_; }

 private:
  struct Parser;

  State fault(int status, std::string why);
  State parse(std::string& inbox);
  State take_head();
  State check_host();
  State take_target(std::string_view target);

  std::unique_ptr<Parser> parser_;
  State state_ = State::head;
  Request request_;
  bool expects_continue_ = false, keep_alive_ = false, is_http10_ = false;
  int status_ = 0;
  std::string why_;
};

}  // namespace octavo::http
