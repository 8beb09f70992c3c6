// Lines to a file descriptor, written by a thread of its own: a reader that is slow, or has stopped
// reading, costs lines, never time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace octavo {

class LineWriter {
 public:
  struct Options {
    int file_descriptor = 2;
    size_t max_lines = 8192;  // that wait, and bytes of them; beyond these the oldest go
    size_t max_bytes = size_t{8} << 20;
    // The line that tells how many went, once lines can be written again.
    std::function<std::string(int64_t num_dropped)> dropped_line = {};
  };

  explicit LineWriter(Options options);
  // Writes what is left, but gives up on a reader that takes nothing for a second.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  // A line with its end. From any thread.
  void write(std::string line);

  int64_t num_dropped() const;

 private:
  struct State;

  // The thread's, too: one that is stuck in the system is left behind.
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace octavo
