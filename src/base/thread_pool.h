// A persistent pool of compute threads; the caller is one of them. A run puts some of them to work
// together as a team, which meets at barriers: a decode step is one run with a few hundred of them.
// Whoever waits spins for a moment, then sleeps in the kernel: an idle program uses no CPU.
//
// One pool per process, made by the program and passed down. One thread at a time may call it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/signal_word.h"

namespace octavo {

class ThreadPool;

// One thread's place in a run.
class Team {
 public:
  int index() const { return index_; }  // 0: the thread that called run()
  int size() const { return size_; }

  // Returns when all threads of the team have come here; what they wrote before is then seen by
  // all.
  void barrier();

  // This thread's one range of [0, count): the same for equal arguments.
  std::pair<int64_t, int64_t> range(int64_t count) const {
    return {count * index_ / size_, count * (index_ + 1) / size_};
  }

  // Calls body(begin, end) until all of [0, count) is done by the team: most of it in one range for
  // each thread, the rest in small pieces for whoever comes first, because a core may be taken away
  // for a while. Once between two barriers, share() or each(); all threads of the team call it with
  // the same count.
  // ranges: all of it in one range for each thread, for work whose speed is that of one long read.
  enum class Sharing { balanced, ranges };
  template <class Body>
  void share(int64_t count, const Body& body, Sharing sharing = Sharing::balanced);

  // Calls body(i) for 0 <= i < count, each on whichever thread is free.
  template <class Body>
  void each(int64_t count, const Body& body);

 private:
  friend class ThreadPool;
  Team(ThreadPool& pool, int index, int size) : pool_(pool), index_(index), size_(size) {}

  ThreadPool& pool_;
  int index_, size_;
};

class ThreadPool {
 public:
  // num_threads - 1 threads are started. REQUIRES: num_threads >= 1. resource_exhausted if the
  // system refuses one of them.
  static Result<std::unique_ptr<ThreadPool>> create(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }
  int num_asleep() const;

  // Calls body(Team&) on `threads` threads at once, the caller among them; returns when all are
  // done. body must not throw and must not call the pool. REQUIRES: 1 <= threads <= size().
  template <class Body>
  void run(int threads, const Body& body) {
    start([](const void* context, Team& team) { (*static_cast<const Body*>(context))(team); },
          &body, threads);
  }

  // Calls body(begin, end) on disjoint ranges that cover [0, count), several for each thread;
  // returns when all are done. body must not throw and must not call the pool.
  template <class Body>
  void parallel_for(int64_t count, const Body& body) {
    if (count > 0)
      run(static_cast<int>(std::min<int64_t>(size(), count)),
          [&](Team& team) { team.share(count, body); });
  }

 private:
  friend class Team;
  using Function = void (*)(const void* context, Team& team);

  ThreadPool() = default;
  void start(Function function, const void* context, int threads);
  void work(int index);
  void take_part(int index);
  void barrier(int threads);

  // The run, written before the seats move.
  Function function_ = nullptr;
  const void* context_ = nullptr;
  int threads_ = 0;
  bool stop_ = false;

  // Each on its own cache line: everyone writes the first, the last to arrive the second, whoever
  // looks for work the third.
  alignas(64) std::atomic<int> arrived_{0};
  SignalWord released_;                       // barriers passed
  alignas(64) std::atomic<int64_t> next_{0};  // shared work given out since the last barrier
  std::unique_ptr<SignalWord[]> seats_;       // runs that each worker was told of
  std::vector<std::thread> workers_;
};

inline void Team::barrier() {
  if (size_ > 1) pool_.barrier(size_);
}

template <class Body>
void Team::share(int64_t count, const Body& body, Sharing sharing) {
  const bool in_ranges = size_ == 1 || sharing == Sharing::ranges;
  const int64_t fixed = in_ranges ? count : count - count / 4;
  const auto [first, last] = range(fixed);
  if (first < last) body(first, last);
  if (in_ranges) return;
  const int64_t grain = std::max<int64_t>(2, (count - fixed) / (4 * size_));
  for (;;) {
    const int64_t begin = fixed + pool_.next_.fetch_add(grain, std::memory_order_relaxed);
    if (begin >= count) return;
    body(begin, std::min(begin + grain, count));
  }
}

template <class Body>
void Team::each(int64_t count, const Body& body) {
  if (size_ == 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  for (int64_t i; (i = pool_.next_.fetch_add(1, std::memory_order_relaxed)) < count;) body(i);
}

}  // namespace octavo
