#include "http/io_loop.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace octavo::http {

void IoLoop::run() {
  for (;;) {
    try {
      context_.run();
      return;
    } catch (...) {
    }
  }
}

void IoLoop::close() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  context_.restart();
  run();
}

void IoLoop::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (!is_closed_) boost::asio::post(context_, std::move(work));
}

}  // namespace octavo::http
