#include "model/thread_count.h"

#include <algorithm>

namespace octavo {
namespace {

// Per core. Virtual server cores read 8 to 28 GB/s alone (measured: Zen 3 and Zen 5) and multiply
// 50 to 250 GMAC/s with int8 activations. The middle is enough: what is decided here is whether a
// step is microseconds or milliseconds long.
constexpr double kBytesPerSecond = 15e9;
constexpr double kMacsPerSecond = 100e9;

// Arriving and being let go costs a few transfers of a cache line (0.2 us measured between two
// cores), and the last of many arrives later than the last of two: work is cut into panels.
constexpr double kBarrierSeconds = 0.4e-6;
constexpr double kBarrierSecondsPerThread = 0.1e-6;

double seconds(const StepCost& cost, int threads) {
  const double work = std::max(static_cast<double>(cost.bytes) / kBytesPerSecond,
                               static_cast<double>(cost.macs) / kMacsPerSecond);
  if (threads == 1) return work;
  return work / threads + static_cast<double>(cost.barriers) *
                              (kBarrierSeconds + kBarrierSecondsPerThread * threads);
}

}  // namespace

int threads_for(const StepCost& cost, int most) {
  int best = 1;
  for (int threads = 2; threads <= most; ++threads)
    if (seconds(cost, threads) < seconds(cost, best)) best = threads;
  return best;
}

}  // namespace octavo
