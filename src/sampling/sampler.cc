#include "sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/rng.h"

namespace octavo {
namespace {

constexpr int32_t kUnseen = -1;
constexpr float kRuledOut = -std::numeric_limits<float>::infinity();

// Tokens whose log-probability lies this far below the best one's are left out: e^-60 times a
// million tokens is under 2^-53 of the total, less than the smallest step of the draw, so none of
// them could be drawn anyway.
constexpr double kNegligible = -60;

// Extreme but valid parameters overflow; a logit must stay a number, and -inf must stay the mark of
// a token ruled out.
float to_logit(double x) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(x, -kLargest, kLargest));
}

void add(float& logit, double amount) {
  if (logit != kRuledOut) logit = to_logit(logit + amount);
}

// Moves a logit down for a penalty above 1, whatever its sign.
void repel(float& logit, double penalty) {
  if (logit != kRuledOut) logit = to_logit(logit > 0 ? logit / penalty : logit * penalty);
}

// Log of the token's probability over that of the best one, after temperature. Subtracting first
// keeps tiny temperatures from making inf - inf.
double relative(float logit, double largest, double temperature) {
  return (logit - largest) / temperature;
}

}  // namespace

// The candidates from the most probable down, sorted only as far as they are read.
class Sampler::Descending {
 public:
  explicit Descending(std::vector<Candidate>& candidates) : candidates_(candidates) {}

  static bool before(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }

  // REQUIRES: i < candidates.size().
  const Candidate& operator[](size_t i) {
    while (i >= sorted_) sort_more();
    return candidates_[i];
  }

 private:
  void sort_more() {
    const auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const size_t wanted = std::max<size_t>(64, 4 * sorted_);
    sorted_ = std::min(candidates_.size(), sorted_ + wanted);
    const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    if (end != candidates_.end()) std::nth_element(begin, end, candidates_.end(), before);
    std::sort(begin, end, before);
  }

  std::vector<Candidate>& candidates_;
  size_t sorted_ = 0;
};

Sampler::Sampler(int num_tokens)
    : num_tokens_(num_tokens), generated_count_(static_cast<size_t>(num_tokens), kUnseen) {
  const auto most = static_cast<size_t>(num_tokens);
  logits_.reserve(most);
  candidates_.reserve(most);
  scratch_.reserve(most);
  seen_.reserve(most);
}

Result<Sample> Sampler::sample(std::span<const float> logits, const SampleRequest& request) {
  const auto count = static_cast<size_t>(num_tokens_);
  if (logits.size() < count)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a row of {} logits is too short for a tokenizer of {} tokens",
                            logits.size(), count));
  const auto row = logits.first(count);
  OCTAVO_CHECK_OK(check_finite(row));
  OCTAVO_CHECK_OK(check_ids(request));

  logits_.assign(row.begin(), row.end());
  apply_bias(request.params);
  apply_penalties(request.params, request.history);
  if (!request.params.allowed_token_ids.empty()) bar_all_but(request.params.allowed_token_ids);
  bar_bad_words(request);
  bar_end_of_answer(request);
  OCTAVO_TRY(const TokenId token, choose(request));

  Sample result{token, std::nullopt};
  if (request.params.logprobs) {
    OCTAVO_TRY(result.logprobs, logprobs_of(row, token, *request.params.logprobs));
  }
  return result;
}

Result<void> Sampler::check_ids(const SampleRequest& request) const {
  const auto check = [&](std::span<const TokenId> ids, std::string_view what) -> Result<void> {
    for (TokenId id : ids)
      if (raw(id) < 0 || raw(id) >= num_tokens_)
        return fail(ErrorCode::invalid_argument,
                    fmt::format("{} holds {}, which is no token; allowed: 0 to {}", what, raw(id),
                                num_tokens_ - 1));
    return {};
  };
  OCTAVO_CHECK_OK(check(request.history.prompt, "the prompt"));
  OCTAVO_CHECK_OK(check(request.history.generated, "the answer"));
  OCTAVO_CHECK_OK(check(request.eog, "the set of end tokens"));
  OCTAVO_CHECK_OK(check(request.params.stop_token_ids, "stop_token_ids"));
  OCTAVO_CHECK_OK(check(request.params.allowed_token_ids, "allowed_token_ids"));
  for (const std::vector<TokenId>& word : request.bad_words)
    OCTAVO_CHECK_OK(check(word, "bad_words"));
  for (const LogitBias& b : request.params.logit_bias)
    OCTAVO_CHECK_OK(check(std::span(&b.id, 1), "logit_bias"));
  return {};
}

void Sampler::apply_bias(const SamplingParams& params) {
  for (const LogitBias& b : params.logit_bias) add(logits_[raw(b.id)], b.bias);
}

void Sampler::apply_penalties(const SamplingParams& params, const TokenHistory& history) {
  if (params.repetition_penalty == 1 && params.frequency_penalty == 0 &&
      params.presence_penalty == 0)
    return;
  count_tokens(history);
  for (int32_t id : seen_) {
    const int32_t count = std::exchange(generated_count_[id], kUnseen);
    repel(logits_[id], params.repetition_penalty);
    add(logits_[id], -params.frequency_penalty * count);
    add(logits_[id], count > 0 ? -params.presence_penalty : 0.0);
  }
}

void Sampler::count_tokens(const TokenHistory& history) {
  seen_.clear();
  const auto see = [&](TokenId id, int32_t times) {
    int32_t& count = generated_count_[raw(id)];
    if (count == kUnseen) {
      seen_.push_back(raw(id));
      count = 0;
    }
    count += times;
  };
  for (TokenId id : history.prompt) see(id, 0);
  for (TokenId id : history.generated) see(id, 1);
}

void Sampler::bar_all_but(std::span<const TokenId> allowed) {
  scratch_.clear();
  for (TokenId id : allowed) scratch_.push_back({logits_[raw(id)], raw(id)});
  std::fill(logits_.begin(), logits_.end(), kRuledOut);
  for (const Candidate& c : scratch_) logits_[c.id] = c.logit;
}

void Sampler::bar_bad_words(const SampleRequest& request) {
  const auto answer = request.history.generated;
  for (const std::vector<TokenId>& word : request.bad_words) {
    const auto before = std::span(word).first(word.size() - 1);
    if (before.size() <= answer.size() && std::ranges::equal(before, answer.last(before.size())))
      logits_[raw(word.back())] = kRuledOut;
  }
}

void Sampler::bar_end_of_answer(const SampleRequest& request) {
  if (std::cmp_greater_equal(request.history.generated.size(), request.params.min_tokens)) return;
  for (TokenId id : request.eog) logits_[raw(id)] = kRuledOut;
  for (TokenId id : request.params.stop_token_ids) logits_[raw(id)] = kRuledOut;
}

Result<TokenId> Sampler::choose(const SampleRequest& request) {
  const TokenId best = argmax(logits_);
  const double largest = logits_[raw(best)];
  if (largest == kRuledOut)
    return fail(ErrorCode::numeric_error,
                "every token that the model allows is barred by allowed_token_ids, bad_words or "
                "min_tokens; bar fewer");
  if (is_greedy(request.params)) return best;
  keep_candidates(largest, request.params);
  const double u = uniform(request.seed, request.choice, request.history.position());
  return draw(largest, request.params, u);
}

void Sampler::keep_candidates(double largest, const SamplingParams& params) {
  const double lowest = std::max(kNegligible, std::log(params.min_p));
  candidates_.clear();
  for (int32_t id = 0; id < num_tokens_; ++id)
    if (relative(logits_[id], largest, params.temperature) >= lowest)
      candidates_.push_back({logits_[id], id});
  if (params.top_k > 0) keep_top_k(static_cast<size_t>(params.top_k));
}

// Leaves the survivors in the order of ids, so that sums over them have one fixed order.
void Sampler::keep_top_k(size_t k) {
  if (k >= candidates_.size()) return;
  scratch_ = candidates_;
  const auto last = scratch_.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(scratch_.begin(), last, scratch_.end(), Descending::before);
  std::erase_if(candidates_, [&](const Candidate& c) { return Descending::before(*last, c); });
}

TokenId Sampler::draw(double largest, const SamplingParams& params, double u) {
  const auto weight = [&](const Candidate& c) {
    return std::exp(relative(c.logit, largest, params.temperature));
  };
  double total = 0;
  for (const Candidate& c : candidates_) total += weight(c);

  Descending ordered(candidates_);
  size_t kept = candidates_.size();
  if (params.top_p < 1) {
    const double enough = params.top_p * total;
    total = 0;
    for (kept = 0; kept < candidates_.size() && total < enough; ++kept)
      total += weight(ordered[kept]);
  }

  double below = 0;
  for (size_t i = 0; i + 1 < kept; ++i) {
    below += weight(ordered[i]);
    if (below > u * total) return TokenId{ordered[i].id};
  }
  return TokenId{ordered[kept - 1].id};
}

}  // namespace octavo
