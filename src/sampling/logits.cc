#include "sampling/logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/exp_of.h"

namespace octavo {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

bool is_number_or_minus_infinity(float x) { return x <= kLargest; }  // false for NaN

// So many entries side by side, which the compiler turns into vector instructions.
constexpr size_t kLanes = 16;

float largest_of(std::span<const float> logits) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<float>::infinity());
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = logits[i + lane] > lanes[lane] ? logits[i + lane] : lanes[lane];
  float largest = *std::max_element(lanes, lanes + kLanes);
  for (; i < logits.size(); ++i) largest = std::max(largest, logits[i]);
  return largest;
}

}  // namespace

Result<void> check_finite(std::span<const float> logits) {
  int forbidden[kLanes] = {}, numbers[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) {
      forbidden[lane] |= !is_number_or_minus_infinity(logits[i + lane]);
      numbers[lane] |= logits[i + lane] >= -kLargest;
    }
  for (size_t lane = 0; i < logits.size(); ++i, ++lane) {
    forbidden[lane] |= !is_number_or_minus_infinity(logits[i]);
    numbers[lane] |= logits[i] >= -kLargest;
  }
  const auto is_set = [](int flag) { return flag != 0; };
  const bool all_allowed = std::none_of(forbidden, forbidden + kLanes, is_set);
  const bool any_number = std::any_of(numbers, numbers + kLanes, is_set);
  if (all_allowed && any_number) return {};
  if (all_allowed)
    return fail(ErrorCode::numeric_error,
                "no logit of the row is a number; the model file is damaged or overflowed");
  const auto bad = std::find_if_not(logits.begin(), logits.end(), is_number_or_minus_infinity);
  return fail(ErrorCode::numeric_error,
              fmt::format("the logit of token {} is {}; the model file is damaged or overflowed",
                          bad - logits.begin(), *bad));
}

TokenId argmax(std::span<const float> logits) {
  const auto best = std::find(logits.begin(), logits.end(), largest_of(logits));
  return TokenId{static_cast<int32_t>(best - logits.begin())};
}

double log_sum_exp(std::span<const float> logits) {
  const double largest = largest_of(logits);
  double sum = 0;
  for (float x : logits) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

double top_probability(std::span<const float> logits) {
  const float best = largest_of(logits);
  const auto weight = [best](float x) { return exp_of(std::max(x - best, -80.0f)); };
  float lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= logits.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += weight(logits[i + lane]);
  double total = 0;
  for (const float lane : lanes) total += lane;
  for (; i < logits.size(); ++i) total += weight(logits[i]);
  return 1 / total;
}

}  // namespace octavo
