// The work of one phase of a team, cut into pieces that whoever is free takes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace octavo {

// Hands out the numbers 0, 1, ... of pieces, phase after phase, without being reset in between: it
// remembers the phase that it is in. A thread that is late and asks for a phase which is over gets
// nothing, provided that all pieces of each phase are handed out before the next begins.
class alignas(64) PieceCounter {
 public:
  static constexpr int64_t kMaxPieces = int64_t{1} << 20;

  // The next piece of `pieces`; -1 if there is none left, or the phase is over. REQUIRES: pieces <=
  // kMaxPieces; phase < 2^43, which is years.
  int64_t take(uint64_t phase, int64_t pieces) {
    constexpr uint64_t kPhase = 2 * kMaxPieces;
    uint64_t old = word_.load(std::memory_order_acquire);
    for (;;) {
      if (old / kPhase > phase) return -1;
      const auto next = old / kPhase == phase ? static_cast<int64_t>(old % kPhase) : 0;
      if (next >= pieces) return -1;
      const uint64_t taken = phase * kPhase + static_cast<uint64_t>(next) + 1;
      if (word_.compare_exchange_weak(old, taken, std::memory_order_acq_rel)) return next;
    }
  }

 private:
  std::atomic<uint64_t> word_{0};
};

// How a range is cut: into one large piece and small ones after it.
struct Cut {
  int64_t count, first, grain;

  int64_t pieces() const {
    return count <= first ? (count > 0) : 1 + (count - first + grain - 1) / grain;
  }
  int64_t begin(int64_t piece) const {
    return piece == 0 ? 0 : std::min(count, first + (piece - 1) * grain);
  }
};

}  // namespace octavo
