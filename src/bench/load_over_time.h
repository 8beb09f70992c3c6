// How busy a run was, told by its requests alone.
#pragma once

#include <vector>

#include "bench/result.h"

namespace octavo {

struct LoadPoint {
  double time_s = 0;
  double value = 0;  // from this time until the next point
};

// Requests sent and not yet answered.
std::vector<LoadPoint> in_flight(const RunResult& run);

// Tokens that came in each second of the run; at most kMaxSeconds points, each of several seconds
// if the run is longer.
inline constexpr int kMaxSeconds = 100'000;
std::vector<LoadPoint> tokens_per_second(const RunResult& run);

}  // namespace octavo
