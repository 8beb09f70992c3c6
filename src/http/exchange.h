// One request and its answer, between the connection it came on and whoever answers it.
//
// The answer is either one respond(), or begin_stream(), any number of write() and end_stream().
// All functions may be called from any thread, do not block, and do nothing once the client has
// gone. An exchange that is dropped without an answer is answered with 500; one that is dropped
// within its stream, or after the client has ended its side, cuts the connection. It may outlive
// the server, after whose end it does nothing and calls nothing.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "http/message.h"

namespace octavo::http {

struct StreamOptions {
  // Sent whenever nothing else was for this long; 0: never.
  std::chrono::milliseconds keep_alive_interval{0};
  std::string keep_alive = {};
  size_t max_pending_bytes = 1 << 20;  // written, but not yet taken by the client's system
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;

  // The request's own body, for who decodes it, or has read it and needs it no longer; and how much
  // memory the request has of ServerLimits::max_request_memory_bytes, at first its body's size.
  // False: there is not so much left. Both: of one thread at a time.
  virtual std::string& body() = 0;
  virtual bool reserve(size_t bytes) = 0;

  virtual void respond(Response response) = 0;

  // The head goes out at once, chunked; response.body, if any, is the first write().
  virtual void begin_stream(Response head, StreamOptions options) = 0;
  // One chunk, flushed. False: more than max_pending_bytes, and than a few such chunks, would lie
  // here, so it was not taken; or the client has gone.
  virtual bool write(std::string chunk) = 0;
  // Calls `work` on the connection's thread once nothing that was written waits for the client, or
  // it has gone.
  virtual void when_written(std::function<void()> work) = 0;
  // After what was written, and `last`, which may exceed the bound.
  virtual void end_stream(std::string last = {}) = 0;

  // `gone` is called once, on the connection's thread, if the client closes its side before the
  // answer is complete; at once if it has. A client that shuts down only its sending side counts as
  // gone. Not called after the last byte of the answer has been written.
  virtual void on_disconnect(std::function<void()> gone) = 0;

  // Calls `work` on the connection's thread, also when the client has gone. Calls come in order.
  virtual void post(std::function<void()> work) = 0;
};

// Called on a thread of the server for each request that was read whole: must not block.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace octavo::http
