// An io_context that one thread runs, and that others may hand work to even after its end.
#pragma once

#include <functional>
#include <mutex>

#include "http/asio.h"

namespace octavo::http {

class IoLoop {
 public:
  boost::asio::io_context& context() { return context_; }

  // Until there is nothing left to do. Whatever handlers throw ends only what they were at.
  void run();
  // After run() has returned: does what was still posted, and ignores what is posted from now on.
  // That would stay here for ever, and keep alive whatever it holds.
  void close();

  void post(std::function<void()> work);

 private:
  boost::asio::io_context context_{1};
  std::mutex mutex_;
  bool is_closed_ = false;
};

}  // namespace octavo::http
