// When requests are sent: at a rate, evenly or in bursts, which may change over the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace octavo {

// The rate goes from `start` to `end`, request by request.
struct RampUp {
  bool exponential = false;  // by the same factor each time; else by the same difference
  double start = 1;          // requests per second
  double end = 1;
};

// linear:START:END or exponential:START:END. Errors: invalid_argument.
Result<RampUp> parse_ramp_up(std::string_view text);

struct Arrivals {
  std::optional<double> rate = {};  // requests per second; nothing, without a ramp: all at once
  std::optional<RampUp> ramp_up = {};
  double burstiness = 1;  // shape of the gamma distribution of the times between; 1: Poisson,
                          // less: more bursts, more: more even
  uint64_t seed = 0;
};

// Seconds after the start, ascending; the first is 0. REQUIRES: positive rates and burstiness.
std::vector<double> arrival_times(const Arrivals& arrivals, int count);

}  // namespace octavo
