#include "sampling/logits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace octavo {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();

bool is_number_or_minus_infinity(float x) { return x <= kLargest; }  // false for NaN

}  // namespace

Result<void> check_finite(std::span<const float> logits) {
  bool any_number = false, all_allowed = true;
  for (float x : logits) {
    all_allowed &= is_number_or_minus_infinity(x);
    any_number |= x >= -kLargest;
  }
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
  const auto best = std::max_element(logits.begin(), logits.end());
  return TokenId{static_cast<int32_t>(best - logits.begin())};
}

double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float x : logits) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

}  // namespace octavo
