// Rotary position embedding: how far each pair of a head's dims is rotated at a position.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace octavo {

// RoPE scaling (YaRN and others): how frequencies are stretched for contexts longer than the model
// was first trained on. The names are those of Hugging Face's configurations.
enum class RopeScaling : uint8_t {
  none,
  linear,    // frequencies are divided by the factor
  dynamic,   // "NTK": for more than the original context the base is larger
  yarn,      // long waves are divided by the factor, short ones kept, a ramp between
  llama3,    // the same with other bands
  longrope,  // each frequency has its own divisor; two sets, for short and for long contexts
};

// Nothing: not known. "default" is "none".
std::optional<RopeScaling> rope_scaling_from_name(std::string_view name);

struct RopeConfig {
  float base = 10000;
  int dims = 0;  // rotated dims of a head, even, <= head_dim
  RopeScaling scaling = RopeScaling::none;
  float factor = 1;            // at least 1
  int original_context = 0;    // positions; for dynamic, yarn, llama3 and longrope
  float beta_fast = 32;        // yarn: turns within the original context, where the ramp begins
  float beta_slow = 1;         //       and ends
  float low_freq_factor = 1;   // llama3: the same, as fractions of the original context
  float high_freq_factor = 4;  //
  // Per pair, what its frequency is divided by. llama3: the scaling as a file may carry it, instead
  // of the numbers above; longrope: for contexts up to the original one.
  std::vector<float> divisors{};
  std::vector<float> long_divisors{};  // longrope: for longer ones
  float attention_factor = 1;          // cosines and sines are multiplied by it
};

// What yarn and longrope multiply by where a file gives no factor of its own.
float yarn_attention_factor(float factor);
float longrope_attention_factor(int context_length, int original_context);

// The angles of positions. They depend on nothing but the position: a token's result must not
// depend on how long the sequence is in the end, and keys stay in a cache as they were rotated. So
// a model that may run more positions than its original context uses longrope's long divisors, and
// the base that dynamic scaling has at the last of them, for all.
class RopeTable {
 public:
  RopeTable() = default;
  // context_length: positions that the model may run.
  RopeTable(const RopeConfig& config, int context_length);

  int pairs() const { return static_cast<int>(frequencies_.size()); }
  // Radians per position.
  const std::vector<float>& frequencies() const { return frequencies_; }

  // Into pairs() floats each, times the attention factor.
  void angles(int position, float* cosines, float* sines) const;

 private:
  std::vector<float> frequencies_;
  float attention_factor_ = 1;
};

}  // namespace octavo
