// An HTTP/1.1 client for many calls at once on one thread, with answers that may be streams of
// server-sent events.
//
// Everything but post() and stop() belongs to the thread of run(), which calls all functions it is
// given. Times are seconds of the steady clock since the client was made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/message.h"
#include "http/sse_parser.h"

namespace octavo::http {

struct ServerAddress {
  bool is_tls = false;
  std::string host = {};  // without the brackets of IPv6
  uint16_t port = 0;
  std::string path = {};  // that all paths of calls come after: "/api", without a slash at its end
  std::string uds = {};   // path of a Unix socket, in place of host and port
};

// http://HOST[:PORT][/PATH], https://..., or unix:/PATH/OF/SOCKET. Errors: invalid_argument.
Result<ServerAddress> parse_address(std::string_view url);

struct ClientOptions {
  ServerAddress address = {};
  bool verify_certificate = true;
  bool keep_alive = true;  // further calls go over connections that earlier ones have left open
};

struct Call {
  std::string method = "GET";
  std::string path = {};  // "/v1/models"
  Headers headers = {};   // beside host, length and connection
  std::string body = {};
  double timeout_s = 0;  // until the answer is complete; 0: none
};

enum class CallEnd : uint8_t {
  answered,     // whole, whatever its status
  refused,      // nobody listens there
  unreachable,  // no connection for another reason, TLS included
  timed_out,
  cut,       // the connection ended before the answer did
  not_http,  // the answer cannot be read
  cancelled,
};

struct CallResult {
  CallEnd end = CallEnd::cut;
  int status = 0;  // 0: no head came
  std::string content_type = {};
  std::string body = {};     // unless it was a stream of events
  std::string message = {};  // why it was not answered
};

class Client {
 public:
  using CallId = uint64_t;
  using OnEvent = std::function<void(const SseEvent& event, double time_s)>;
  using OnDone = std::function<void(const CallResult& result, double time_s)>;

  // Looks the host up. Errors: invalid_argument if it is not found; io_error.
  static Result<std::unique_ptr<Client>> create(const ClientOptions& options);
  virtual ~Client() = default;  // drops what is under way, without a call of its functions

  // `on_event` is called for each event of an answer of status 200 that is a stream of them; it may
  // be empty. `on_done` is called once, after return.
  virtual CallId send(Call call, OnEvent on_event, OnDone on_done) = 0;
  virtual void cancel(CallId id) = 0;  // unknown or done: nothing happens
  virtual void cancel_all() = 0;
  virtual void at(double time_s, std::function<void()> action) = 0;
  virtual double now_s() const = 0;

  virtual void run() = 0;  // until stop(), or nothing is left to do
  virtual void stop() = 0;
  virtual void post(std::function<void()> action) = 0;
};

}  // namespace octavo::http
