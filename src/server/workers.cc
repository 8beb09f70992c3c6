#include "server/workers.h"

#include <sys/resource.h>

#include <utility>

#include "base/memory_shortage.h"

namespace octavo {

Workers::Workers(int num_threads, int niceness) {
  try {
    for (int i = 0; i < num_threads; ++i)
      threads_.emplace_back([this, niceness, takes_lengthy = i > 0 || num_threads == 1] {
        if (niceness != 0) setpriority(PRIO_PROCESS, 0, niceness);  // of this thread alone
        give_up_memory_sooner();
        run(takes_lengthy);
      });
  } catch (...) {  // the system refuses a thread; those that run must end first
    close();
    throw;
  }
}

Workers::~Workers() { close(); }

void Workers::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  threads_.clear();
}

void Workers::post(std::function<void()> work, Length length) {
  {
    const std::lock_guard lock(mutex_);
    (length == Length::brief ? brief_ : lengthy_).push_back(std::move(work));
  }
  changed_.notify_all();  // not every thread takes everything
}

// What is lengthy first: those who may are fewer.
Workers::Queue* Workers::next_queue(bool takes_lengthy) {
  if (takes_lengthy && !lengthy_.empty()) return &lengthy_;
  return brief_.empty() ? nullptr : &brief_;
}

void Workers::run(bool takes_lengthy) {
  for (;;) {
    std::unique_lock lock(mutex_);
    Queue* queue = nullptr;
    changed_.wait(lock, [&] { return (queue = next_queue(takes_lengthy)) || closing_; });
    if (!queue) return;
    const auto work = std::move(queue->front());
    queue->pop_front();
    lock.unlock();
    try {
      work();
    } catch (...) {
      // No memory, most likely: what it would have answered is dropped, and answered as such.
    }
  }
}

}  // namespace octavo
