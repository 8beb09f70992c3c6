// What is said of many measurements of one thing.
#pragma once

#include <cstdint>
#include <vector>

namespace octavo {

// In the unit of the values. All zero without values.
struct Summary {
  int64_t count = 0;
  double mean = 0;
  double std = 0;  // of these values, not an estimate for others: divided by count
  double min = 0;
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0;
  double max = 0;

  double median() const { return p50; }
  bool operator==(const Summary&) const = default;
};

// REQUIRES: finite values.
Summary summarize(std::vector<double> values);

// The value below which `percent` of the values lie; between two of them, on the straight line
// (numpy's default). REQUIRES: sorted, not empty; 0 <= percent <= 100.
double percentile(const std::vector<double>& sorted, double percent);

}  // namespace octavo
