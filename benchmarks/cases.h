// What the benchmarks of kernels have in common.
#pragma once

#include <benchmark/benchmark.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/api.h"

namespace octavo::kernels {

// Inputs and outputs of one case, and what it has to do.
class Case {
 public:
  virtual ~Case() = default;
  // Empty, or how the result differs from that of ref/.
  virtual std::string check() = 0;
  virtual void run() = 0;  // once; this is timed
  double macs = 0;         // multiply-adds of a run; 0: not shown
  double bytes = 0;        // that a run reads
};

// Registers a benchmark. The case is made when its turn comes, and only the current one is kept.
void register_case(const std::string& name, std::function<std::unique_ptr<Case>()> make);

// By file.
void register_attention();
void register_float_ops();
void register_matmul();

// Empty, or the first place where a and b differ by more than this, relative to the size of b's
// largest.
inline std::string difference(const std::vector<float>& a, const std::vector<float>& b,
                              float tolerance) {
  float largest = 0;
  for (const float x : b) largest = std::max(largest, std::fabs(x));
  for (size_t i = 0; i < b.size(); ++i)
    if (!(std::fabs(a[i] - b[i]) <= tolerance * largest))
      return "number " + std::to_string(i) + " is " + std::to_string(a[i]) + ", in ref/ " +
             std::to_string(b[i]);
  return "";
}

}  // namespace octavo::kernels
