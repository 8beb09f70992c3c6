#include "bench/arrivals.h"

#include <fmt/format.h>

#include <cmath>

#include "bench/draws.h"
#include "bench/number_text.h"
#include "formats/quote.h"

namespace octavo {
namespace {

double rate_at(const Arrivals& arrivals, int index, int count) {
  if (!arrivals.ramp_up) return *arrivals.rate;
  const RampUp& ramp = *arrivals.ramp_up;
  const double progress = count > 1 ? static_cast<double>(index) / (count - 1) : 0;
  return ramp.exponential ? ramp.start * std::pow(ramp.end / ramp.start, progress)
                          : ramp.start + (ramp.end - ramp.start) * progress;
}

}  // namespace

Result<RampUp> parse_ramp_up(std::string_view text) {
  const size_t first = text.find(':'), second = text.find(':', first + 1);
  const std::string_view kind = text.substr(0, first);
  if (second != std::string_view::npos && (kind == "linear" || kind == "exponential")) {
    const auto start = number_between(text.substr(first + 1, second - first - 1), 1e-6, 1e9);
    const auto end = number_between(text.substr(second + 1), 1e-6, 1e9);
    if (start && end) return RampUp{kind == "exponential", *start, *end};
  }
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} is neither linear:START:END nor exponential:START:END, in requests "
                          "per second",
                          quote(text)));
}

std::vector<double> arrival_times(const Arrivals& arrivals, int count) {
  std::vector<double> times(static_cast<size_t>(count), 0);
  if (!arrivals.rate && !arrivals.ramp_up) return times;
  const double shape = arrivals.burstiness;
  for (int i = 1; i < count; ++i) {
    Draws draws(arrivals.seed, DrawFor::arrival, static_cast<uint32_t>(i));
    const auto place = static_cast<size_t>(i);
    times[place] = times[place - 1] + draws.gamma(shape) / (shape * rate_at(arrivals, i, count));
  }
  return times;
}

}  // namespace octavo
