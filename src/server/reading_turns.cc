#include "server/reading_turns.h"

namespace octavo {

bool ReadingTurns::begin(const std::function<bool()>& reserve) {
  std::unique_lock lock(mutex_);
  bool has_room = false;
  ended_.wait(lock, [&] { return (has_room = reserve()) || num_reading_ == 0; });
  num_reading_ += has_room;
  return has_room;
}

ReadingTurns::End::~End() {
  const std::lock_guard lock(turns_.mutex_);
  --turns_.num_reading_;
  turns_.ended_.notify_all();
}

}  // namespace octavo
