// Who reads a request while memory is short: where there is no room, but others are reading, whose
// memory comes back in a moment, one waits for them.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

namespace octavo {

class ReadingTurns {
 public:
  // Waits until `reserve` succeeds. False: it did not, and nobody reads any more.
  bool begin(const std::function<bool()>& reserve);

  // Of one that has begun: at its end the others may try.
  class End {
   public:
    explicit End(ReadingTurns& turns) : turns_(turns) {}
    End(const End&) = delete;
    End& operator=(const End&) = delete;
    ~End();

   private:
    ReadingTurns& turns_;
  };

 private:
  std::mutex mutex_;  // of what follows
  std::condition_variable ended_;
  int num_reading_ = 0;
};

}  // namespace octavo
