#include "server/workers.h"

#include <utility>

namespace octavo {

Workers::Workers(int num_threads) {
  for (int i = 0; i < num_threads; ++i) threads_.emplace_back([this] { run(); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  threads_.clear();
}

void Workers::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void Workers::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closing_ || !work_.empty(); });
    if (work_.empty()) return;
    const auto work = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    try {
      work();
    } catch (...) {
      // No memory, most likely: what it would have answered is dropped, and answered as such.
    }
  }
}

}  // namespace octavo
