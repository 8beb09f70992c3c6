#include "base/thread_pool.h"

#include <fmt/format.h>
#include <sched.h>

#include <system_error>

namespace octavo {
namespace {

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
  pool->seats_ = std::make_unique<SignalWord[]>(static_cast<size_t>(num_threads));
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
  for (int i = 1; i < size(); ++i) seats_[static_cast<size_t>(i)].advance();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::start(Function function, const void* context, int threads) {
  function_ = function;
  context_ = context;
  threads_ = threads;
  for (int i = 1; i < threads; ++i) seats_[static_cast<size_t>(i)].advance();
  take_part(0);
}

void ThreadPool::take_part(int index) {
  Team team(*this, index, threads_);
  function_(context_, team);
  team.barrier();
}

void ThreadPool::work(int index) {
  SignalWord& runs = seats_[static_cast<size_t>(index)];
  for (uint32_t seen = 0;; ++seen) {
    runs.await_change(seen);
    if (stop_) return;
    take_part(index);
  }
}

// The last to arrive clears the counters, which nobody uses at that moment, and lets the others go.
void ThreadPool::barrier(int threads) {
  const uint32_t passed = released_.value();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < threads)
    return released_.await_change(passed);
  arrived_.store(0, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
  released_.advance();
}

int ThreadPool::num_asleep() const {
  int count = released_.num_asleep();
  for (int i = 1; i < size(); ++i) count += seats_[static_cast<size_t>(i)].num_asleep();
  return count;
}

}  // namespace octavo
