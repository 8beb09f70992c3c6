// Waiting without giving the core away.
#pragma once

#include <chrono>

namespace octavo {

// Tells the processor that a loop waits.
inline void pause_in_loop() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Calls done() until it is true, or false for longer than `most`; returns the last answer.
template <class Done>
bool spin_until(const Done& done, std::chrono::nanoseconds most) {
  constexpr int kSpinsPerClock = 64;  // reading the clock costs as much as tens of pauses
  const auto end = std::chrono::steady_clock::now() + most;
  do {
    for (int i = 0; i < kSpinsPerClock; ++i) {
      if (done()) return true;
      pause_in_loop();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace octavo
