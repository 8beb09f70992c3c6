// Ctrl-C as a request to stop.
#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace octavo::cli {

// While one exists, SIGINT does not end the program but requests a stop. Only one may exist at a
// time.
class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();

  std::stop_token token() const { return source_.get_token(); }
  void request_stop() { source_.request_stop(); }
  bool was_interrupted() const;

 private:
  struct sigaction previous_ = {};
  std::stop_source source_;
  std::jthread watcher_;
};

}  // namespace octavo::cli
