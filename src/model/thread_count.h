// How many threads a step is worth.
#pragma once

#include <cstdint>

namespace octavo {

// What a step has to do.
struct StepCost {
  int64_t bytes = 0;     // read from memory: weights, K and V
  int64_t macs = 0;      // multiply-adds of the products
  int64_t barriers = 0;  // where all threads wait for each other
};

// The number in [1, most] for which the model below expects the shortest step; the smallest of
// equals. Results never depend on it.
//   time(threads) = max(bytes / bandwidth, macs / rate) / threads + barriers * wait(threads)
int threads_for(const StepCost& cost, int most);

}  // namespace octavo
