// Signals as requests to stop: the first asks to end what is on its way, the second to end at once.
#pragma once

#include <csignal>
#include <initializer_list>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace octavo::cli {

// While one exists, these signals do not end the program. Only one may exist at a time. A hangup
// that is ignored (nohup) stays so.
class StopSignals {
 public:
  explicit StopSignals(std::initializer_list<int> signals = {SIGINT});
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;
  ~StopSignals();

  std::stop_token first() const { return first_.get_token(); }
  std::stop_token second() const { return second_.get_token(); }
  void request_stop() { first_.request_stop(); }  // as the first signal does
  bool came() const;                              // a signal, not request_stop()

 private:
  std::vector<std::pair<int, struct sigaction>> previous_;
  std::stop_source first_, second_;
  std::jthread watcher_;
};

}  // namespace octavo::cli
