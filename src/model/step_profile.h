// Where the time of forward passes goes, by kind of work. Filled by Transformer when it is given
// one.
#pragma once

#include <array>
#include <chrono>
#include <string_view>

namespace octavo {

enum class StepPart : uint8_t {
  plan,     // embedding rows, positions, attention items
  norm,     // norms, residual additions, rounding of activations
  qkv,      // products
  rope_kv,  // rotation, writing K and V
  attention,
  o,
  gate_up,
  activation,  // silu(gate) * up, rounding
  down,
  head,  // final norm and output head
};
inline constexpr std::array<std::string_view, 10> kStepPartNames = {
    "plan", "norm", "qkv", "rope_kv", "attention", "o", "gate_up", "activation", "down", "head"};

class StepProfile {
 public:
  void start() { last_ = Clock::now(); }
  // What passed since start() or the last lap belongs to this part.
  void lap(StepPart part) {
    const auto now = Clock::now();
    seconds_[static_cast<size_t>(part)] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }
  double seconds(StepPart part) const { return seconds_[static_cast<size_t>(part)]; }
  // 0 to 1; 0 if nothing was timed.
  double share(StepPart part) const {
    const double total = total_seconds();
    return total > 0 ? seconds(part) / total : 0;
  }
  double total_seconds() const {
    double total = 0;
    for (double s : seconds_) total += s;
    return total;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_;
  std::array<double, kStepPartNames.size()> seconds_{};
};

}  // namespace octavo
