#include "bench/spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/median.h"

namespace octavo {
namespace {

constexpr double kLeastChange = 0.01;

// Student's t at 99.5 %, by degrees of freedom; the last stands for all above, which it overstates.
constexpr std::array kStudent = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499,
                                 3.355,  3.250, 3.169, 3.106, 3.055, 3.012, 2.977,
                                 2.947,  2.921, 2.898, 2.878, 2.861, 2.845};

double student(size_t degrees) { return kStudent[std::min(degrees, kStudent.size()) - 1]; }

// Half of the interval of the mean.
double interval(const std::vector<double>& values, double mean) {
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const auto count = static_cast<double>(values.size());
  return student(values.size() - 1) * std::sqrt(squares / (count - 1) / count);
}

Call call_of(const std::vector<double>& ratios, double ratio) {
  if (ratios.size() < 2) return Call::unknown;
  std::vector<double> logs;
  double mean = 0;
  for (const double each : ratios) {
    logs.push_back(std::log(each));
    mean += logs.back() / static_cast<double>(ratios.size());
  }
  const bool is_large = std::abs(ratio - 1) >= kLeastChange;
  return is_large && std::abs(mean) > interval(logs, mean) ? Call::differs : Call::noise;
}

std::string range_text(const Change& change) {
  return fmt::format("{:.3g} to {:.3g} in {} rounds", change.low, change.high, change.rounds);
}

}  // namespace

Change change_of(const std::vector<double>& ratios) {
  const auto [low, high] = std::ranges::minmax(ratios);
  const double ratio = median(ratios);
  return {.ratio = ratio,
          .low = low,
          .high = high,
          .rounds = static_cast<int>(ratios.size()),
          .call = call_of(ratios, ratio)};
}

std::string ratio_text(double ratio) {
  if (ratio >= 2) return fmt::format("{:.3g} x", ratio);
  if (ratio <= 0.5) return fmt::format("{:.3g} x less", 1 / ratio);
  const double percent = std::round(1000 * std::abs(ratio - 1)) / 10;
  if (percent == 0) return "the same";
  return fmt::format("{:.3g} % {}", percent, ratio > 1 ? "more" : "less");
}

std::string change_text(const Change& change) {
  if (change.low == 1 && change.high == 1) return "the same";
  switch (change.call) {
    case Call::unknown:
      return ratio_text(change.ratio) + " in one round, which may be noise";
    case Call::noise:
      return fmt::format("no difference beyond noise (ratio {})", range_text(change));
    case Call::differs:
      break;
  }
  return fmt::format("{} (ratio {})", ratio_text(change.ratio), range_text(change));
}

}  // namespace octavo
