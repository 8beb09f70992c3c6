// Who reads a request while memory is short: where there is no room, but others are reading, whose
// memory comes back in a moment, one waits for them. Room is what is left of the budget and what
// the system would give: for all who read, as they have not taken theirs yet.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <stop_token>

namespace octavo {

class ReadingTurns {
 public:
  // Waits until there is room for so many bytes, `reserve` of the budget included. False: there is
  // not, and nobody reads any more, or it is to stop.
  bool begin(size_t bytes, const std::function<bool()>& reserve, const std::stop_token& stop = {});

  // Of one that has begun: at its end the others may try.
  class End {
   public:
    End(ReadingTurns& turns, size_t bytes) : turns_(turns), bytes_(bytes) {}
    End(const End&) = delete;
    End& operator=(const End&) = delete;
    ~End();

   private:
    ReadingTurns& turns_;
    size_t bytes_;
  };

 private:
  std::mutex mutex_;  // of what follows
  std::condition_variable_any ended_;
  int num_reading_ = 0;
  size_t reading_bytes_ = 0;
};

}  // namespace octavo
