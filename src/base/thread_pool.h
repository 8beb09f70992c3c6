// A persistent pool of compute threads; the caller is one of them. Workers spin for a moment after
// each job, then sleep in the kernel: a decode step is a few hundred short jobs in a row, an idle
// program uses no CPU.
//
// One pool per process, made by the program and passed down. One thread at a time may call
// parallel_for.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/result.h"

namespace octavo {

// Cores this process may really use: CPU affinity and the cgroup's quota, rounded down; at least 1.
int available_cores();

class ThreadPool {
 public:
  // num_threads - 1 threads are started. REQUIRES: num_threads >= 1. resource_exhausted if the
  // system refuses one of them.
  static Result<std::unique_ptr<ThreadPool>> create(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(begin, end) on disjoint ranges that cover [0, count), one range per thread at most;
  // returns when all are done. body must not throw and must not call the pool.
  template <class Body>
  void parallel_for(int64_t count, const Body& body) {
    run([](const void* context, int64_t begin,
           int64_t end) { (*static_cast<const Body*>(context))(begin, end); },
        &body, count);
  }

 private:
  ThreadPool() = default;
  using Function = void (*)(const void* context, int64_t begin, int64_t end);

  void run(Function function, const void* context, int64_t count);
  void work(int index);
  void run_share(int index) const;

  // The job, written before epoch_ moves.
  Function function_ = nullptr;
  const void* context_ = nullptr;
  int64_t count_ = 0;
  bool stop_ = false;

  // Each on its own cache line: the one is written by the caller, the other by every worker.
  alignas(64) std::atomic<uint32_t> epoch_{0};
  alignas(64) std::atomic<int> pending_{0};
  std::vector<std::thread> workers_;
};

}  // namespace octavo
