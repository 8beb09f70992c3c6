// A number that only grows and that threads wait for: they spin for a moment, then sleep in the
// kernel.
#pragma once

#include <atomic>
#include <cstdint>

namespace octavo {

class alignas(64) SignalWord {
 public:
  uint64_t value() const { return value_.load(std::memory_order_acquire); }
  int num_asleep() const { return num_asleep_.load(std::memory_order_relaxed); }

  // Adds one and wakes whoever sleeps; what the caller wrote before is seen by those who waited.
  void advance();

  // Both return when it is no longer `old`; the second sleeps at once.
  void await_change(uint64_t old);
  void sleep_while(uint64_t old);

 private:
  std::atomic<uint64_t> value_{0};
  alignas(64) std::atomic<int> num_asleep_{0};  // apart from what is spun on
};

}  // namespace octavo
