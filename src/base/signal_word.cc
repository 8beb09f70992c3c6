#include "base/signal_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <ctime>

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than the gap between two steps, in which a token is drawn: a thread that sleeps takes tens
// of us to wake. It does not yield in between: two threads that got onto one core would take turns
// there for ever, 0.4 ms a barrier where it was measured, while one that wakes is put on an idle
// core.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kSpinsPerClock = 64;  // reading the clock costs as much as tens of pauses
// Nobody sleeps for longer without looking. A wake that is lost then costs a moment and not the
// program: with std::atomic's wait, two threads were found asleep at a barrier that was passed.
constexpr std::timespec kLongestSleep = {1, 0};

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until done(); false if the time is over.
template <class Done>
bool spin_until(const Done& done) {
  const auto end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < kSpinsPerClock; ++i) {
      if (done()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return done();
}

}  // namespace

// Each side changes its own word before it looks at the other's, in the one order of all: so either
// the change is seen before the sleep, or the sleeper is seen and woken.
void SignalWord::advance() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (num_asleep_.load(std::memory_order_seq_cst) > 0)
    ::syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void SignalWord::await_change(uint32_t old) {
  if (spin_until([&] { return value() != old; })) return;
  num_asleep_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == old)
    ::syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, old, &kLongestSleep, nullptr, 0);
  num_asleep_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace octavo
