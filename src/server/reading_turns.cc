#include "server/reading_turns.h"

#include "base/memory_shortage.h"

namespace octavo {

bool ReadingTurns::begin(size_t bytes, const std::function<bool()>& reserve,
                         const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto try_it = [&] { return system_would_give(reading_bytes_ + bytes) && reserve(); };
  bool has_room = false;
  ended_.wait(lock, stop, [&] { return (has_room = try_it()) || num_reading_ == 0; });
  if (!has_room) return false;
  ++num_reading_;
  reading_bytes_ += bytes;
  return true;
}

ReadingTurns::End::~End() {
  const std::lock_guard lock(turns_.mutex_);
  --turns_.num_reading_;
  turns_.reading_bytes_ -= bytes_;
  turns_.ended_.notify_all();
}

}  // namespace octavo
