#include "base/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <chrono>
#include <system_error>

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than the gap between two steps, in which a token is drawn: a thread that sleeps takes tens
// of us to wake. It does not yield in between: two threads that got onto one core would take turns
// there for ever, 0.4 ms a barrier where it was measured, while one that wakes is put on an idle
// core.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kSpinsPerClock = 64;  // reading the clock costs as much as tens of pauses

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

// Moves the calling thread, worker `index`, to a core of its own beside `first`, that of the pool's
// maker, and then leaves it to the system again. A new thread may begin on its maker's core; two
// that wait for each other there look like little work, and it took 20 ms until they were parted.
void start_on_own_core(int index, int first) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  const int others = CPU_COUNT(&allowed) - (first >= 0 && CPU_ISSET(first, &allowed) ? 1 : 0);
  if (others < 1) return;
  int skip = (index - 1) % others;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (core == first || !CPU_ISSET(core, &allowed) || skip-- > 0) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(core, &own);
    // A refusal costs speed at the start only.
    sched_setaffinity(0, sizeof(own), &own);
    sched_setaffinity(0, sizeof(allowed), &allowed);
    return;
  }
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int num_threads) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
  pool->seats_ = std::make_unique<Seat[]>(static_cast<size_t>(num_threads));
  for (int i = 1; i < num_threads; ++i) {
    try {
      pool->workers_.emplace_back([self = pool.get(), i, core = sched_getcpu()] {
        start_on_own_core(i, core);
        self->work(i);
      });
    } catch (const std::system_error& error) {
      return fail(ErrorCode::resource_exhausted,
                  fmt::format("thread {} of {} cannot be started ({}); ask for fewer threads",
                              i + 1, num_threads, error.code().message()));
    }
  }
  return pool;
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  for (int i = 1; i < size(); ++i) {
    seats_[static_cast<size_t>(i)].runs.fetch_add(1, std::memory_order_seq_cst);
    seats_[static_cast<size_t>(i)].runs.notify_one();
  }
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::start(Function function, const void* context, int threads) {
  function_ = function;
  context_ = context;
  threads_ = threads;
  for (int i = 1; i < threads; ++i) {
    seats_[static_cast<size_t>(i)].runs.fetch_add(1, std::memory_order_seq_cst);
    seats_[static_cast<size_t>(i)].runs.notify_one();
  }
  take_part(0);
}

void ThreadPool::take_part(int index) {
  Team team(*this, index, threads_);
  function_(context_, team);
  team.barrier();
}

void ThreadPool::work(int index) {
  std::atomic<uint32_t>& runs = seats_[static_cast<size_t>(index)].runs;
  for (uint32_t seen = 0;; ++seen) {
    await_change(runs, seen);
    if (stop_) return;
    take_part(index);
  }
}

// The last to arrive clears the counters, which nobody uses at that moment, and lets the others go.
// Here and in start(), the word is changed in the one order of all: notify looks next whether
// anybody sleeps, and may not look before the change is seen, or who falls asleep then stays so.
void ThreadPool::barrier(int threads) {
  const uint32_t passed = released_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < threads)
    return await_change(released_, passed);
  arrived_.store(0, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
  released_.store(passed + 1, std::memory_order_seq_cst);
  released_.notify_all();
}

void ThreadPool::await_change(const std::atomic<uint32_t>& word, uint32_t old) {
  if (spin_until([&] { return word.load(std::memory_order_acquire) != old; })) return;
  num_asleep_.fetch_add(1, std::memory_order_relaxed);
  word.wait(old, std::memory_order_acquire);
  num_asleep_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace octavo
