#include "base/thread_pool.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

// Longer than the gap between two steps, in which a token is drawn: a thread that sleeps takes tens
// of us to wake, and one that yields on a busy machine comes back after other programs' turns, 0.4
// ms later on average where it was measured. After the yields the program counts as idle.
constexpr auto kSpin = std::chrono::microseconds(200);
constexpr auto kYield = std::chrono::milliseconds(1);
constexpr int kSpinsPerClock = 64;  // reading the clock costs as much as tens of pauses

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins, then yields, until done(); false if the time is over.
template <class Done>
bool wait_awake(const Done& done) {
  const auto start = Clock::now();
  for (auto now = start; now < start + kSpin; now = Clock::now())
    for (int i = 0; i < kSpinsPerClock; ++i) {
      if (done()) return true;
      pause();
    }
  while (Clock::now() < start + kYield) {
    if (done()) return true;
    std::this_thread::yield();
  }
  return done();
}

}  // namespace

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int num_threads) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
  pool->seats_ = std::make_unique<Seat[]>(static_cast<size_t>(num_threads));
  for (int i = 1; i < num_threads; ++i) {
    try {
      pool->workers_.emplace_back([self = pool.get(), i] { self->work(i); });
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
    seats_[static_cast<size_t>(i)].runs.fetch_add(1, std::memory_order_release);
    seats_[static_cast<size_t>(i)].runs.notify_one();
  }
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::start(Function function, const void* context, int threads) {
  function_ = function;
  context_ = context;
  threads_ = threads;
  for (int i = 1; i < threads; ++i) {
    seats_[static_cast<size_t>(i)].runs.fetch_add(1, std::memory_order_release);
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
void ThreadPool::barrier(int threads) {
  const uint32_t passed = released_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < threads)
    return await_change(released_, passed);
  arrived_.store(0, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
  released_.store(passed + 1, std::memory_order_release);
  released_.notify_all();
}

void ThreadPool::await_change(const std::atomic<uint32_t>& word, uint32_t old) {
  if (wait_awake([&] { return word.load(std::memory_order_acquire) != old; })) return;
  num_asleep_.fetch_add(1, std::memory_order_relaxed);
  word.wait(old, std::memory_order_acquire);
  num_asleep_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace octavo
