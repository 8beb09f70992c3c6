#include "core/sampling_params.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

namespace octavo {
namespace {

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr int kLargestInt = std::numeric_limits<int>::max();

template <class T>
tl::unexpected<Error> refuse(std::string_view field, const T& value, std::string_view allowed) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} is {}; allowed: {}", field, value, allowed));
}

// Asks whether the value is inside, never whether it is outside: NaN is not inside anything.
template <class T>
Result<void> expect_within(std::string_view field, T value, T lowest, T highest,
                           std::string_view allowed) {
  if (value >= lowest && value <= highest) return {};
  return refuse(field, value, allowed);
}

Result<void> expect_token(std::string_view field, TokenId id, int vocab_size) {
  if (raw(id) >= 0 && raw(id) < vocab_size) return {};
  return refuse(field, raw(id), fmt::format("token ids 0 to {}", vocab_size - 1));
}

Result<void> expect_tokens(std::string_view field, const std::vector<TokenId>& ids,
                           int vocab_size) {
  OCTAVO_CHECK_OK(expect_within(fmt::format("length of {}", field), ids.size(), size_t{0},
                                static_cast<size_t>(vocab_size),
                                fmt::format("0 to {}, each token once", vocab_size)));
  for (const TokenId id : ids)
    if (raw(id) < 0 || raw(id) >= vocab_size)
      return expect_token(fmt::format("{} entry", field), id, vocab_size);
  return {};
}

Result<void> validate_shape_of_distribution(const SamplingParams& p) {
  OCTAVO_CHECK_OK(expect_within("temperature", p.temperature, 0.0, kLargest,
                                "a finite number, 0 (greedy) or more"));
  OCTAVO_CHECK_OK(expect_within("top_p", p.top_p, std::numeric_limits<double>::denorm_min(), 1.0,
                                "more than 0, at most 1"));
  OCTAVO_CHECK_OK(
      expect_within("top_k", p.top_k, -1, kLargestInt, "1 or more; 0 or -1 to turn it off"));
  return expect_within("min_p", p.min_p, 0.0, 1.0, "0 to 1");
}

Result<void> validate_penalties(const SamplingParams& p) {
  OCTAVO_CHECK_OK(expect_within("presence_penalty", p.presence_penalty, -2.0, 2.0, "-2 to 2"));
  OCTAVO_CHECK_OK(expect_within("frequency_penalty", p.frequency_penalty, -2.0, 2.0, "-2 to 2"));
  return expect_within("repetition_penalty", p.repetition_penalty,
                       std::numeric_limits<double>::denorm_min(), kLargest,
                       "a finite number above 0");
}

Result<void> validate_logit_bias(const std::vector<LogitBias>& biases, int vocab_size) {
  std::vector<TokenId> ids;
  for (const LogitBias& b : biases) {
    OCTAVO_CHECK_OK(expect_token("logit_bias id", b.id, vocab_size));
    OCTAVO_CHECK_OK(expect_within(fmt::format("logit_bias of token {}", raw(b.id)), b.bias, -100.0f,
                                  100.0f, "-100 to 100"));
    ids.push_back(b.id);
  }
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice == ids.end()) return {};
  return refuse("logit_bias id", raw(*twice), "each id once");
}

Result<void> validate_stops(const SamplingParams& p, int vocab_size) {
  if (!p.stop.empty() && !p.detokenize)
    return refuse("detokenize", "false", "true where there are stop strings, which need text");
  if (p.stop.size() > kMaxStopStrings)
    return refuse("number of stop strings", p.stop.size(), fmt::format("0 to {}", kMaxStopStrings));
  for (const std::string& text : p.stop)
    OCTAVO_CHECK_OK(expect_within("length of a stop string", text.size(), size_t{1}, kMaxStopBytes,
                                  fmt::format("1 to {} bytes", kMaxStopBytes)));
  return expect_tokens("stop_token_ids", p.stop_token_ids, vocab_size);
}

Result<void> validate_barred(const SamplingParams& p, int vocab_size) {
  OCTAVO_CHECK_OK(expect_tokens("allowed_token_ids", p.allowed_token_ids, vocab_size));
  if (p.bad_words.size() > kMaxBadWords)
    return refuse("number of bad_words", p.bad_words.size(), fmt::format("0 to {}", kMaxBadWords));
  size_t bytes = 0;
  for (const std::string& word : p.bad_words) {
    OCTAVO_CHECK_OK(expect_within("length of a bad word", word.size(), size_t{1}, kMaxStopBytes,
                                  fmt::format("1 to {} bytes", kMaxStopBytes)));
    bytes += word.size();
  }
  return expect_within("length of all bad_words", bytes, size_t{0}, kMaxBadWordsBytes,
                       fmt::format("0 to {} bytes", kMaxBadWordsBytes));
}

Result<void> validate_lengths(const SamplingParams& p) {
  const int longest = p.max_tokens.value_or(kLargestInt);
  OCTAVO_CHECK_OK(expect_within("max_tokens", longest, 0, kLargestInt, "0 or more"));
  return expect_within("min_tokens", p.min_tokens, 0, longest, "0 to max_tokens");
}

Result<void> validate_logprobs(std::string_view field, std::optional<int> count, int cap,
                               int vocab_size) {
  if (!count) return {};
  if (cap == kNoLogprobsCap)
    return expect_within(field, *count, -1, kLargestInt, "0 or more; -1 for all");
  if (may_ask_for_all_logprobs(cap, vocab_size))
    return expect_within(field, *count, -1, cap, fmt::format("0 to {}; -1 for all", cap));
  return expect_within(field, *count, 0, cap, fmt::format("0 to {}", cap));
}

}  // namespace

bool may_ask_for_all_logprobs(int max_logprobs, int vocab_size) {
  return max_logprobs == kNoLogprobsCap || max_logprobs >= vocab_size;
}

Result<void> validate(const SamplingParams& params, int vocab_size, int max_logprobs) {
  OCTAVO_CHECK_OK(
      expect_within("n", params.n, 1, kMaxChoices, fmt::format("1 to {}", kMaxChoices)));
  OCTAVO_CHECK_OK(validate_shape_of_distribution(params));
  OCTAVO_CHECK_OK(validate_penalties(params));
  OCTAVO_CHECK_OK(validate_logit_bias(params.logit_bias, vocab_size));
  OCTAVO_CHECK_OK(validate_stops(params, vocab_size));
  OCTAVO_CHECK_OK(validate_barred(params, vocab_size));
  OCTAVO_CHECK_OK(validate_lengths(params));
  OCTAVO_CHECK_OK(validate_logprobs("logprobs", params.logprobs, max_logprobs, vocab_size));
  return validate_logprobs("prompt_logprobs", params.prompt_logprobs, max_logprobs, vocab_size);
}

}  // namespace octavo
