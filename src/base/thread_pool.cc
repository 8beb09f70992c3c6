#include "base/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <system_error>

namespace octavo {
namespace {

// How long a thread spins before it sleeps: longer than the gaps between the jobs of one step (a
// few us), far shorter than the gap between two requests.
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr int kSpinsPerClock = 64;  // reading the clock costs as much as tens of pauses

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until done() or the time is over; returns done().
template <class Done>
bool spin_until(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kSpinsPerClock; ++i) {
      if (done()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

int affinity_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

// cgroup v2: "max 100000" or "150000 100000" (microseconds of CPU per period).
int cgroup_cores() {
  std::ifstream in("/sys/fs/cgroup/cpu.max");
  std::string quota;
  long long period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return 1 << 20;
  return static_cast<int>(std::max(1LL, std::atoll(quota.c_str()) / period));
}

}  // namespace

int available_cores() { return std::min(affinity_cores(), cgroup_cores()); }

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int num_threads) {
  std::unique_ptr<ThreadPool> pool(new ThreadPool);
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
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(Function function, const void* context, int64_t count) {
  if (workers_.empty() || count <= 1) {
    if (count > 0) function(context, 0, count);
    return;
  }
  function_ = function;
  context_ = context;
  count_ = count;
  pending_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  run_share(0);
  const auto done = [this] { return pending_.load(std::memory_order_acquire) == 0; };
  while (!spin_until(done)) std::this_thread::yield();
}

void ThreadPool::run_share(int index) const {
  const int64_t begin = count_ * index / size();
  const int64_t end = count_ * (index + 1) / size();
  if (begin < end) function_(context_, begin, end);
}

void ThreadPool::work(int index) {
  for (uint32_t seen = 0;; ++seen) {
    const auto moved = [this, seen] { return epoch_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(moved)) epoch_.wait(seen, std::memory_order_acquire);
    if (stop_) return;
    run_share(index);
    pending_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace octavo
