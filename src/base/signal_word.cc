#include "base/signal_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <climits>
#include <ctime>

#include "base/spin.h"

namespace octavo {
namespace {

// Longer than the gap between two steps, in which a token is drawn: a thread that sleeps takes tens
// of us to wake. It does not yield in between: two threads that got onto one core would take turns
// there for ever, 0.4 ms a barrier where it was measured, while one that wakes is put on an idle
// core.
constexpr auto kSpin = std::chrono::microseconds(50);
// Nobody sleeps for longer without looking. A wake that is lost then costs a moment and not the
// program: with std::atomic's wait, two threads were found asleep at a barrier that was passed.
constexpr std::timespec kLongestSleep = {1, 0};

// The kernel looks at the lower half only; it differs after each of the next 2^32 changes.
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(std::atomic<uint64_t>) == 8);
static_assert(std::endian::native == std::endian::little, "the lower half comes first");

}  // namespace

// Each side changes its own word before it looks at the other's, in the one order of all: so either
// the change is seen before the sleep, or the sleeper is seen and woken.
void SignalWord::advance() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (num_asleep_.load(std::memory_order_seq_cst) > 0)
    ::syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void SignalWord::await_change(uint64_t old) {
  if (!spin_until([&] { return value() != old; }, kSpin)) sleep_while(old);
}

void SignalWord::sleep_while(uint64_t old) {
  num_asleep_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == old)
    ::syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(old), &kLongestSleep,
              nullptr, 0);
  num_asleep_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace octavo
