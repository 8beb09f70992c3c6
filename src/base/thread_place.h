// Where a thread runs, as others see it: whether it has a core, and giving it one.
//
// A thread that lost its core to another program gets it back after milliseconds. Who waits for it
// meanwhile can do better than spin or sleep: the two change places. The one that holds work goes
// on at once on the other's core, and the one that has nothing to do stands in line where the other
// program runs, so that it is there in the moment in which that core is free again.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace octavo {

class ThreadPlace {
 public:
  // The calling thread has this place from now on, until another one calls it. Nobody may ask about
  // a thread that has ended.
  void take() { thread_ = pthread_self(); }
  // By the thread whose place it is, from time to time.
  void note_core() { core_.store(sched_getcpu(), std::memory_order_relaxed); }

  // The time for which the thread had a core; between two calls it stands still if it had none.
  int64_t running_ns() const;

  // `held_up` has no core; the caller, who has this place, waits for it and has nothing else to do.
  // Returns once the caller has a core again. False: they could not be parted; the caller may sleep
  // to let the other have its core. others: held while another thread's cores are changed.
  bool change_with(ThreadPlace& held_up, std::mutex& others);

 private:
  bool leave_core(int core, const ThreadPlace& held_up, cpu_set_t& to);
  cpu_set_t allowed_cores() const;

  pthread_t thread_{};
  std::atomic<int> core_{-1};
  bool moves_ = false;   // it may run on one core only, for the moment
  cpu_set_t allowed_{};  // while it moves: those that it may have at other times
};

}  // namespace octavo
