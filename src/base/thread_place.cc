#include "base/thread_place.h"

#include <ctime>

namespace octavo {
namespace {

cpu_set_t only(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  return set;
}

bool restrict_to(pthread_t thread, const cpu_set_t& cores) {
  return pthread_setaffinity_np(thread, sizeof(cores), &cores) == 0;
}

}  // namespace

int64_t ThreadPlace::running_ns() const {
  clockid_t clock;
  std::timespec time{};
  if (pthread_getcpuclockid(thread_, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

cpu_set_t ThreadPlace::allowed_cores() const {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (moves_) return allowed_;
  pthread_getaffinity_np(thread_, sizeof(set), &set);
  return set;
}

// Where the caller goes: to the other's core, or to any if they are on the same.
bool ThreadPlace::leave_core(int core, const ThreadPlace& held_up, cpu_set_t& to) {
  allowed_ = allowed_cores();
  const auto may_go = [&](int other) {
    return other >= 0 && other != core && CPU_ISSET(other, &allowed_);
  };
  int target = held_up.core_.load(std::memory_order_relaxed);
  for (int other = 0; !may_go(target) && other < CPU_SETSIZE; ++other) target = other;
  if (!may_go(target)) return false;
  to = only(target);
  return moves_ = true;
}

// The system moves a thread at once that may no longer run where it is; where it may run afterwards
// is as before.
bool ThreadPlace::change_with(ThreadPlace& held_up, std::mutex& others) {
  const int core = sched_getcpu();
  cpu_set_t to{};
  {
    const std::unique_lock lock(others, std::try_to_lock);
    if (!lock || core < 0) return false;
    const cpu_set_t theirs = held_up.allowed_cores();
    if (held_up.core_.load(std::memory_order_relaxed) != core && CPU_ISSET(core, &theirs)) {
      restrict_to(held_up.thread_, only(core));
      restrict_to(held_up.thread_, theirs);
    }
    if (!leave_core(core, held_up, to)) return false;
  }
  restrict_to(thread_, to);
  const std::lock_guard lock(others);
  restrict_to(thread_, allowed_);
  moves_ = false;
  return true;
}

}  // namespace octavo
