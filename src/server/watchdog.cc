#include "server/watchdog.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

// Looks are a twentieth of a second apart; a watcher that comes much later did not run.
constexpr double kMostBetweenLooks_s = 0.25;

}  // namespace

double Watchdog::look(double now_s, int64_t num_beats) {
  const bool is_first = last_beat_ < 0;
  const double passed_s = std::min(now_s - std::exchange(last_look_s_, now_s), kMostBetweenLooks_s);
  const bool has_beaten = std::exchange(last_beat_, num_beats) != num_beats;
  if (is_first) return 0;
  stalled_s_ = has_beaten ? 0 : stalled_s_ + passed_s;
  return passed_s;
}

}  // namespace octavo
