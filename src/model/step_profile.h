// Where the time of steps goes, by kind of work, as the thread sees it that runs the engine. Filled
// by Transformer when it is given one.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

namespace octavo {

enum class StepPart : uint8_t {
  plan,     // embedding rows, angles, attention items
  norm,     // norms, rounding of activations
  qkv,      // products
  rope_kv,  // rotation, writing K and V, where attention does not do it by itself
  attention,
  o,
  gate_up,
  activation,  // silu(gate) * up
  down,
  head,    // final norm and output head
  wait,    // for the other threads
  engine,  // between a model's calls: sampling, text, bookkeeping
};
inline constexpr std::array<std::string_view, 12> kStepPartNames = {
    "plan",    "norm",       "qkv",  "rope_kv", "attention", "o",
    "gate_up", "activation", "down", "head",    "wait",      "engine"};

// Whether the part is the arithmetic itself, not what is around it.
constexpr bool is_kernel(StepPart part) {
  return part != StepPart::plan && part != StepPart::wait && part != StepPart::engine;
}

class StepProfile {
 public:
  // A call of the model begins; what passed since the last one ended belongs to the engine.
  void start() {
    if (running_)
      lap(StepPart::engine);
    else
      last_ = Clock::now();
    running_ = true;
  }
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
  double share_outside_kernels() const {
    double share_of_all = 0;
    for (size_t i = 0; i < seconds_.size(); ++i)
      if (!is_kernel(static_cast<StepPart>(i))) share_of_all += share(static_cast<StepPart>(i));
    return share_of_all;
  }

 private:
  using Clock = std::chrono::steady_clock;
  bool running_ = false;
  Clock::time_point last_;
  std::array<double, kStepPartNames.size()> seconds_{};
};

}  // namespace octavo
