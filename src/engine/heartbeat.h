// Proof that the engine's thread runs, and what it is doing, for whoever asks from outside: health,
// gauges and the watchdog derive from it alone.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace octavo {

enum class EnginePhase : uint8_t { idle, commands, planning, forward, sampling, events, ended };
std::string_view name(EnginePhase phase);

class Heartbeat {
 public:
  // Of the engine's thread.
  void beat(EnginePhase phase) {
    phase_.store(phase, std::memory_order_relaxed);
    beat_ns_.store(now_ns(), std::memory_order_relaxed);
    num_beats_.fetch_add(1, std::memory_order_relaxed);
  }
  void begin_step(int num_tokens, int num_seqs) {
    num_tokens_.store(num_tokens, std::memory_order_relaxed);
    num_seqs_.store(num_seqs, std::memory_order_relaxed);
    num_steps_.fetch_add(1, std::memory_order_relaxed);
  }

  // Seconds since the last beat. An engine without work beats once a second.
  double age_s() const {
    return static_cast<double>(now_ns() - beat_ns_.load(std::memory_order_relaxed)) * 1e-9;
  }
  int64_t num_beats() const { return num_beats_.load(std::memory_order_relaxed); }
  EnginePhase phase() const { return phase_.load(std::memory_order_relaxed); }
  // "in the forward of step 17, 512 tokens of 9 sequences, for 61 s"
  std::string describe() const;

 private:
  static int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  std::atomic<EnginePhase> phase_{EnginePhase::idle};
  std::atomic<int64_t> beat_ns_{now_ns()};
  std::atomic<int64_t> num_beats_{0}, num_steps_{0};
  std::atomic<int> num_tokens_{0}, num_seqs_{0};
};

}  // namespace octavo
