// When a line about long work is due where lines cannot be replaced: never of short work, then each
// time a tenth of the time has passed again, so that a night's work does not fill a log.
#pragma once

namespace octavo::cli {

class ProgressPace {
 public:
  explicit ProgressPace(double start_s) : start_s_(start_s), next_s_(start_s + kLeast_s) {}

  // Of a time that never goes back. True: the next one is due later.
  bool is_due(double now_s);

 private:
  static constexpr double kLeast_s = 10;
  double start_s_, next_s_;
};

}  // namespace octavo::cli
