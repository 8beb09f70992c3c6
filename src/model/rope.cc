#include "model/rope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace octavo {
namespace {

constexpr std::array kNames = {
    std::pair{std::string_view("none"), RopeScaling::none},
    std::pair{std::string_view("default"), RopeScaling::none},
    std::pair{std::string_view("linear"), RopeScaling::linear},
    std::pair{std::string_view("dynamic"), RopeScaling::dynamic},
    std::pair{std::string_view("yarn"), RopeScaling::yarn},
    std::pair{std::string_view("llama3"), RopeScaling::llama3},
    std::pair{std::string_view("longrope"), RopeScaling::longrope},
};

// In float and in this order, as the models were trained.
float frequency(float base, int pair, int dims) {
  const float exponent = static_cast<float>(2 * pair) / static_cast<float>(dims);
  return 1.0f / static_cast<float>(std::pow(double{base}, double{exponent}));
}

// The pair, not rounded, that turns so many times within the original context.
double pair_of_turns(const RopeConfig& c, float turns) {
  return c.dims * std::log(c.original_context / (double{turns} * 2 * std::numbers::pi)) /
         (2 * std::log(double{c.base}));
}

// YaRN (Peng et al., 2023), as transformers computes it: the ramp goes over the number of the pair.
void scale_yarn(const RopeConfig& c, std::vector<float>& frequencies) {
  const double low = std::max(std::floor(pair_of_turns(c, c.beta_fast)), 0.0);
  double high = std::min<double>(std::ceil(pair_of_turns(c, c.beta_slow)), c.dims - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double plain = double{frequencies[i]};
    frequencies[i] = static_cast<float>(plain / double{c.factor} * ramp + plain * (1 - ramp));
  }
}

// Llama 3.1: the ramp goes over the number of waves within the original context.
void scale_llama3(const RopeConfig& c, std::vector<float>& frequencies) {
  for (float& f : frequencies) {
    const double waves = c.original_context * double{f} / (2 * std::numbers::pi);
    const double kept = std::clamp((waves - double{c.low_freq_factor}) /
                                       (double{c.high_freq_factor} - double{c.low_freq_factor}),
                                   0.0, 1.0);
    f = static_cast<float>((1 - kept) * double{f} / double{c.factor} + kept * double{f});
  }
}

void divide(const std::vector<float>& divisors, std::vector<float>& frequencies) {
  for (size_t i = 0; i < divisors.size(); ++i) frequencies[i] /= divisors[i];
}

// Dynamic scaling: the one that transformers computes for a sequence of that length.
float base_for(const RopeConfig& c, int context_length) {
  if (c.scaling != RopeScaling::dynamic || context_length <= c.original_context || c.dims <= 2)
    return c.base;
  const double factor = c.factor;
  const double growth = factor * context_length / c.original_context - (factor - 1);
  return static_cast<float>(double{c.base} * std::pow(growth, c.dims / (c.dims - 2.0)));
}

void scale(const RopeConfig& c, int context_length, std::vector<float>& frequencies) {
  switch (c.scaling) {
    case RopeScaling::none:
    case RopeScaling::dynamic:
      return;
    case RopeScaling::linear:
      for (float& f : frequencies) f /= c.factor;
      return;
    case RopeScaling::yarn:
      return scale_yarn(c, frequencies);
    case RopeScaling::llama3:
      return c.divisors.empty() ? scale_llama3(c, frequencies) : divide(c.divisors, frequencies);
    case RopeScaling::longrope:
      return divide(context_length > c.original_context ? c.long_divisors : c.divisors,
                    frequencies);
  }
}

}  // namespace

std::optional<RopeScaling> rope_scaling_from_name(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name, [](const auto& n) { return n.first; });
  return found == kNames.end() ? std::nullopt : std::optional(found->second);
}

float yarn_attention_factor(float factor) {
  return factor > 1 ? 0.1f * std::log(factor) + 1.0f : 1.0f;
}

float longrope_attention_factor(int context_length, int original_context) {
  const double factor = static_cast<double>(context_length) / original_context;
  if (factor <= 1 || original_context < 2) return 1;
  return static_cast<float>(
      std::sqrt(1 + std::log(factor) / std::log(double{1} * original_context)));
}

RopeTable::RopeTable(const RopeConfig& config, int context_length)
    : attention_factor_(config.attention_factor) {
  const float base = base_for(config, context_length);
  for (int i = 0; i < config.dims / 2; ++i) frequencies_.push_back(frequency(base, i, config.dims));
  scale(config, context_length, frequencies_);
}

void RopeTable::angles(int position, float* cosines, float* sines) const {
  for (int i = 0; i < pairs(); ++i) {
    const float f = frequencies_[static_cast<size_t>(i)];
    const double angle = double{static_cast<float>(position) * f};
    cosines[i] = static_cast<float>(std::cos(angle)) * attention_factor_;
    sines[i] = static_cast<float>(std::sin(angle)) * attention_factor_;
  }
}

}  // namespace octavo
