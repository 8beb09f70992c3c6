// Watches a heartbeat from outside. Only time in which the watcher itself ran counts: where the
// whole process was stopped, by a debugger or a paused machine, nobody was stuck.
#pragma once

#include <atomic>
#include <cstdint>

namespace octavo {

class Watchdog {
 public:
  // Some times a second, by one thread: seconds of any clock that goes on, and the beats until now.
  // Returns the seconds since the last look, as far as they count.
  double look(double now_s, int64_t num_beats);

  // How long it has been watched without a beat. From any thread.
  double stalled_s() const { return stalled_s_; }

 private:
  double last_look_s_ = 0;
  int64_t last_beat_ = -1;  // none was seen: the first look only begins
  std::atomic<double> stalled_s_{0};
};

}  // namespace octavo
