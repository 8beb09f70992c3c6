// Bytes to requests, without sockets: fed as they come, cut anywhere.
#pragma once

#include <string>
#include <string_view>

#include "http/body_decoder.h"
#include "http/message.h"
#include "http/server.h"

namespace octavo::http {

class RequestReader {
 public:
  enum class State : uint8_t { head, body, complete, fault };

  explicit RequestReader(const ServerLimits& limits);

  // Takes bytes off the front of `inbox`, up to the end of the request at most.
  State feed(std::string& inbox);
  State state() const { return state_; }

  // From State::body on: all but the body.
  const Request& head() const { return request_; }
  bool expects_continue() const { return expects_continue_; }
  size_t body_bytes() const { return body_.num_bytes(); }  // so far
  // With State::complete.
  Request take();
  bool keep_alive() const { return keep_alive_; }
  bool is_http10() const { return is_http10_; }

  // With State::fault.
  int status() const { return status_; }
  const std::string& why() const { return why_; }

 private:
  void fault(int status, std::string why);  // the first one counts
  void read(std::string& inbox);
  void skip_empty_line(std::string& inbox);
  void find_head(std::string& inbox);
  void parse_head(std::string_view head);
  void take_target(std::string_view target);
  void replace_host(std::string_view host);
  void check_host();
  void check_expect();
  void expect_body();
  void check_body();
  size_t count_of(std::string_view name) const;

  ServerLimits limits_;
  bool is_begun_ = false;
  size_t scanned_ = 0;  // bytes of the head that hold no end of it
  BodyDecoder body_;
  State state_ = State::head;
  Request request_;
  bool expects_continue_ = false, keep_alive_ = false, is_http10_ = false;
  int status_ = 0;
  std::string why_;
};

}  // namespace octavo::http
