// One axis of a plot: from numbers to pixels, and where the ticks are.
#pragma once

#include <string>
#include <vector>

namespace octavo {

class SvgAxis {
 public:
  // Covers [low, high], a bit more if they are equal, on pixels [from, to]; from > to for an axis
  // that goes up. A logarithmic axis needs low > 0, else it is linear.
  SvgAxis(double low, double high, double from, double to, bool logarithmic = false);

  double pixel(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  // Round numbers inside, ascending: 1, 2 or 5 times a power of ten. About `wanted` of them.
  std::vector<double> ticks(int wanted = 6) const;
  // Moves the ends of a linear axis outwards to the next tick.
  void widen_to_ticks(int wanted = 6);

 private:
  double step(int wanted) const;
  std::vector<double> linear_ticks(int wanted) const;
  std::vector<double> log_ticks(int wanted) const;

  double low_, high_, from_, to_;
  bool logarithmic_;
};

}  // namespace octavo
