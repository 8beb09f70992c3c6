// Log-probabilities as reported to users: of the model's own distribution, before bias, penalties,
// temperature and filters, so that they do not change with the sampling parameters.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "core/ids.h"

namespace octavo {

// Reported in place of anything lower, -inf included, so that every value is a finite number.
inline constexpr float kLogprobFloor = -9999.0f;

struct LogprobEntry {
  TokenId id;
  float logprob;  // natural logarithm, kLogprobFloor to 0
  int rank;  // 1 for the most probable token; of equally probable ones the lower id comes first
};

struct TokenLogprobs {
  TokenId chosen;
  std::vector<LogprobEntry> entries;  // by rank; the chosen token is always among them
};

// The `top_k` most probable tokens and `chosen`, which is the drawn token, or the next token of a
// prompt. top_k -1: all. `logits` are those of the tokenizer's tokens: cut rows padded by the model
// before. Errors: numeric_error as of check_finite(); invalid_argument for `chosen` outside the
// row.
Result<TokenLogprobs> logprobs_of(std::span<const float> logits, TokenId chosen, int top_k);

}  // namespace octavo
