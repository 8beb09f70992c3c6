// Ctrl-C and SIGTERM as requests to stop: the first asks to end what is on its way, the second to
// end at once.
#pragma once

#include <csignal>
#include <stop_token>
#include <thread>

namespace octavo::cli {

// Only one may exist at a time.
class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  std::stop_token first() const { return first_.get_token(); }
  std::stop_token second() const { return second_.get_token(); }

 private:
  struct sigaction previous_int_ = {}, previous_term_ = {};
  std::stop_source first_, second_;
  std::jthread watcher_;
};

}  // namespace octavo::cli
