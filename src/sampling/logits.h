// A row of logits as the model gives it: one float per token id. Read-only; nothing here keeps the
// span.
#pragma once

#include <span>

#include "base/result.h"
#include "core/ids.h"

namespace octavo {

// Refuses NaN, +inf, a row of nothing but -inf, and an empty row (numeric_error). Single -inf
// entries are allowed: a model may rule tokens out.
Result<void> check_finite(std::span<const float> logits);

// The largest entry; of equal ones the lowest id. REQUIRES: check_finite(logits).
TokenId argmax(std::span<const float> logits);

// log of the sum of exp(logit), summed in double in the order of ids. REQUIRES:
// check_finite(logits). logits[i] - log_sum_exp(logits) is the log-probability of token i.
double log_sum_exp(std::span<const float> logits);

// The probability of the largest entry, within 1e-3 of it: quicker than by log_sum_exp(). NaN for
// a row that check_finite() refuses.
double top_probability(std::span<const float> logits);

}  // namespace octavo
