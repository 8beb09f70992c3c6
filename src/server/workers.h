// A few threads for what may take milliseconds and must not hold up connections or the engine:
// parsing, templates, tokenizing, long answers.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace octavo {

class Workers {
 public:
  // Long work leaves one thread to the short, where there are several: a few large requests do not
  // hold up the small ones of others.
  enum class Length : uint8_t { brief, lengthy };

  // niceness: where there are too few cores for all, others go first (setpriority(2)).
  explicit Workers(int num_threads, int niceness = 0);
  // Finishes what was handed over.
  ~Workers();

  // Unbounded by itself: each connection has at most one request here.
  void post(std::function<void()> work, Length length = Length::brief);

 private:
  using Queue = std::deque<std::function<void()>>;

  void close();
  void run(bool takes_lengthy);
  // The one to take from; nullptr: there is nothing to do.
  Queue* next_queue(bool takes_lengthy);

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  Queue brief_, lengthy_;
  bool closing_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace octavo
