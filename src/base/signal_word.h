// A number that threads wait for to change: they spin for a moment, then sleep in the kernel.
#pragma once

#include <atomic>
#include <cstdint>

namespace octavo {

class alignas(64) SignalWord {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  int num_asleep() const { return num_asleep_.load(std::memory_order_relaxed); }

  // Changes it and wakes whoever sleeps; what the caller wrote before is seen by those who waited.
  void advance();

  // Returns when it is no longer `old`.
  void await_change(uint32_t old);

 private:
  std::atomic<uint32_t> value_{0};
  alignas(64) std::atomic<int> num_asleep_{0};  // apart from what is spun on
};

}  // namespace octavo
