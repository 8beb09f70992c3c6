// A few threads for what may take milliseconds and must not hold up connections or the engine:
// parsing, templates, tokenizing, long answers.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo {

// Unbounded by itself: each connection has at most one request here.
class Workers {
 public:
  explicit Workers(int num_threads);
  // Finishes what was handed over.
  ~Workers();

  void post(std::function<void()> work);

 private:
  void run();

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool closing_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace octavo
