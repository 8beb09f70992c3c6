#include "bench/svg_axis.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace octavo {

SvgAxis::SvgAxis(double low, double high, double from, double to, bool logarithmic)
    : low_(low), high_(high), from_(from), to_(to), logarithmic_(logarithmic && low > 0) {
  if (low_ < high_) return;
  if (logarithmic_) {
    low_ /= 2;
    high_ *= 2;
  } else {
    high_ = low_ == 0 ? 1 : low_ + std::abs(low_);
  }
}

double SvgAxis::pixel(double value) const {
  const double share = logarithmic_ ? std::log(value / low_) / std::log(high_ / low_)
                                    : (value - low_) / (high_ - low_);
  return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
}

double SvgAxis::step(int wanted) const {
  const double rough = (high_ - low_) / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (rough <= factor * power) return factor * power;
  return 10 * power;
}

std::vector<double> SvgAxis::linear_ticks(int wanted) const {
  const double by = step(wanted);
  std::vector<double> ticks;
  for (double k = std::ceil(low_ / by - 1e-9); k * by <= high_ + by * 1e-9; ++k)
    ticks.push_back(k * by);
  return ticks;
}

std::vector<double> SvgAxis::log_ticks(int wanted) const {
  std::vector<double> all, powers;
  for (double k = std::floor(std::log10(low_)); k <= std::log10(high_); ++k)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, k);
      if (value < low_ || value > high_) continue;
      all.push_back(value);
      if (factor == 1) powers.push_back(value);
    }
  return all.size() <= static_cast<size_t>(wanted) + 1 ? all : powers;
}

std::vector<double> SvgAxis::ticks(int wanted) const {
  return logarithmic_ ? log_ticks(wanted) : linear_ticks(wanted);
}

void SvgAxis::widen_to_ticks(int wanted) {
  if (logarithmic_) return;
  const double by = step(wanted);
  low_ = std::floor(low_ / by + 1e-9) * by;
  high_ = std::ceil(high_ / by - 1e-9) * by;
}

}  // namespace octavo
