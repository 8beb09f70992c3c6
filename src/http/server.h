// An HTTP/1.1 server: connections, framing, limits, TLS. Knows nothing of what it serves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "http/exchange.h"

namespace octavo::http {

struct ServerLimits {
  size_t max_header_bytes = 64 << 10;
  size_t max_body_bytes = 32 << 20;
  // Of all connections: bodies, and what exchanges reserve beyond. Bodies for which there is no
  // room are answered with 503.
  size_t max_request_memory_bytes = 1 << 30;
  int max_connections = 16384;
  std::chrono::milliseconds header_timeout{
      15'000};                                      // from a request's first byte to its blank line
  std::chrono::milliseconds body_timeout{60'000};   // from there to the end of its body
  std::chrono::milliseconds idle_timeout{75'000};   // between two requests
  std::chrono::milliseconds write_timeout{30'000};  // without the client taking a byte
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address or a name
  uint16_t port = 8000;            // 0: any free one
  std::string uds = {};            // path of a Unix socket, instead of host and port
  std::string ssl_certfile = {}, ssl_keyfile = {};  // both or none: TLS
  int num_threads = 1;
  ServerLimits limits = {};
  Handler handler = {};
  // Asked when a request's headers are there and its body is not: an answer here spares the body,
  // and the connection is closed after it. May be empty.
  std::function<std::optional<Response>(const Request& head)> on_head = {};
  // The answer to what is no proper request (400, 408, 411, 413, 414, 431, 501, 505), and to an
  // exchange that was dropped (500). Empty: plain text.
  std::function<Response(int status, const std::string& why)> on_fault = {};
};

class Server {
 public:
  // Listens before it returns. Errors: invalid_argument (a host that is no address or cannot be
  // found, certificate or key that cannot be used), io_error (the port is in use, which is said in
  // these words, or may not be used; a Unix socket that is in use or is no socket).
  static Result<std::unique_ptr<Server>> start(ServerOptions options);
  virtual ~Server() = default;  // cuts all connections

  virtual uint16_t port() const = 0;
  // No new connections. Those that are idle are closed, the others after their present answer.
  virtual void stop_accepting() = 0;
  virtual int num_connections() const = 0;
  virtual size_t request_memory_bytes() const = 0;  // of max_request_memory_bytes
};

}  // namespace octavo::http
