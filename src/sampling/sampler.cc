#include "sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/rng.h"
#include "sampling/exp_of.h"

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

}  // namespace

// Log of a token's probability over that of the best one, after temperature. Subtracting first
// keeps tiny temperatures from making inf - inf.
struct Sampler::Scale {
  static constexpr double kMost = 1e300, kLeast = -1e30;

  Scale(double best, double temperature)
      : largest(best), inverse(std::min(1 / temperature, kMost)) {}
  float operator()(float logit) const {
    return static_cast<float>(std::max((logit - largest) * inverse, kLeast));
  }

  double weight(const Candidate& c) const { return exp_of((*this)(c.logit)); }
  // Never less for a smaller logit.
  size_t bucket(const Candidate& c) const {
    return std::min(static_cast<size_t>(-(*this)(c.logit) * kBucketsPerNat), kBuckets - 1);
  }

  double largest, inverse;
};

// Most probable first; of equals the lower id.
bool Sampler::before(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

Sampler::Sampler(int num_tokens)
    : num_tokens_(num_tokens), generated_count_(static_cast<size_t>(num_tokens), kUnseen) {
  const auto most = static_cast<size_t>(num_tokens);
  logits_.reserve(most);
  candidates_.reserve(most);
  scratch_.reserve(most);
  seen_.reserve(most);
}

// Leaves in logits_ what the token is chosen by; returns the row itself.
Result<std::span<const float>> Sampler::adjust(std::span<const float> logits,
                                               const SampleRequest& request) {
  const auto count = static_cast<size_t>(num_tokens_);
  if (logits.size() < count)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a row of {} logits is too short for a tokenizer of {} tokens",
                            logits.size(), count));
  const auto row = logits.first(count);
  OCTAVO_CHECK_OK(check_finite(row));
  OCTAVO_CHECK_OK(check_ids(request));

  static const TokenRules kNoRules;
  const TokenRules& rules = request.rules ? *request.rules : kNoRules;
  logits_.assign(row.begin(), row.end());
  apply_bias(rules.logit_bias());
  apply_penalties(request.params, request.history);
  bar_unmasked(rules.allowed());
  bar_unmasked(request.allowed);
  bar_bad_words(rules, request.history.generated);
  bar_end_of_answer(request, rules);
  return row;
}

Result<Sample> Sampler::sample(std::span<const float> logits, const SampleRequest& request) {
  OCTAVO_TRY(const auto row, adjust(logits, request));
  OCTAVO_TRY(const TokenId token, choose(request));
  return with_logprobs(token, row, request);
}

Result<Sample> Sampler::with_logprobs(TokenId token, std::span<const float> row,
                                      const SampleRequest& request) const {
  Sample result{token, std::nullopt};
  if (request.params.logprobs) {
    OCTAVO_TRY(result.logprobs, logprobs_of(row, token, *request.params.logprobs));
  }
  return result;
}

Result<Sample> Sampler::sample_among(const Guesses& guesses, std::span<const float> logits,
                                     const SampleRequest& request) {
  if (guesses.tokens.empty() || !guesses.q || is_greedy(request.params))
    return sample(logits, request);
  OCTAVO_TRY(Distribution p, distribution(logits, request));
  const auto number = [&](RandomUse use, size_t index) {
    return uniform(request.seed, request.choice, request.history.position(), use,
                   static_cast<uint32_t>(index));
  };
  std::vector<double> numbers;
  for (size_t i = 0; i < guesses.tokens.size(); ++i) numbers.push_back(number(RandomUse::keep, i));
  numbers.push_back(number(RandomUse::otherwise, 0));
  const Chosen chosen = choose_among(std::move(p), guesses.tokens, *guesses.q, numbers);
  return with_logprobs(chosen.token, logits.first(static_cast<size_t>(num_tokens_)), request);
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
  if (request.rules && request.rules->num_tokens() > num_tokens_)
    return fail(ErrorCode::invalid_argument,
                fmt::format("rules for {} tokens do not fit a tokenizer of {}",
                            request.rules->num_tokens(), num_tokens_));
  if (request.rules) OCTAVO_CHECK_OK(check_mask(request.rules->allowed()));
  return check_mask(request.allowed);
}

Result<void> Sampler::check_mask(std::span<const uint64_t> mask) const {
  if (mask.empty() || std::cmp_greater_equal(mask.size() * 64, num_tokens_)) return {};
  return fail(ErrorCode::invalid_argument,
              fmt::format("a mask of {} bits is too short for a tokenizer of {} tokens",
                          mask.size() * 64, num_tokens_));
}

void Sampler::apply_bias(std::span<const LogitBias> biases) {
  for (const LogitBias& b : biases) add(logits_[raw(b.id)], b.bias);
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

void Sampler::bar_unmasked(std::span<const uint64_t> allowed) {
  if (allowed.empty()) return;
  for (size_t id = 0; id < logits_.size(); ++id)
    if (!(allowed[id / 64] >> id % 64 & 1)) logits_[id] = kRuledOut;
}

void Sampler::bar_bad_words(const TokenRules& rules, std::span<const TokenId> answer) {
  barred_.clear();
  rules.add_barred_after(answer, barred_);
  for (const TokenId id : barred_) logits_[raw(id)] = kRuledOut;
}

void Sampler::bar_end_of_answer(const SampleRequest& request, const TokenRules& rules) {
  if (std::cmp_greater_equal(request.history.generated.size(), request.params.min_tokens)) return;
  for (TokenId id : request.eog) logits_[raw(id)] = kRuledOut;
  for (TokenId id : rules.stop_tokens()) logits_[raw(id)] = kRuledOut;
}

Result<TokenId> Sampler::find_best() const {
  const TokenId best = argmax(logits_);
  if (logits_[raw(best)] == kRuledOut)
    return fail(ErrorCode::invalid_argument,
                "every token that the model allows is barred by allowed_token_ids, bad_words, "
                "min_tokens or what the answer has to look like; bar fewer");
  return best;
}

Result<TokenId> Sampler::choose(const SampleRequest& request) {
  OCTAVO_TRY(const TokenId best, find_best());
  if (is_greedy(request.params)) return best;
  const double largest = logits_[raw(best)];
  keep_candidates(largest, request.params);
  const double u = uniform(request.seed, request.choice, request.history.position());
  return draw(largest, request.params, u);
}

void Sampler::keep_candidates(double largest, const SamplingParams& params) {
  const auto lowest = static_cast<float>(std::max(kNegligible, std::log(params.min_p)));
  const Scale scale(largest, params.temperature);
  candidates_.clear();
  for (int32_t id = 0; id < num_tokens_; ++id)
    if (scale(logits_[id]) >= lowest) candidates_.push_back({logits_[id], id});
  if (params.top_k > 0) keep_top_k(static_cast<size_t>(params.top_k));
}

// Leaves the survivors in the order of ids, so that sums over them have one fixed order.
void Sampler::keep_top_k(size_t k) {
  if (k >= candidates_.size()) return;
  scratch_ = candidates_;
  const auto last = scratch_.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(scratch_.begin(), last, scratch_.end(), before);
  std::erase_if(candidates_, [&](const Candidate& c) { return before(*last, c); });
}

// Sorting a vocabulary to walk down it would cost more than all else here. Candidates are put into
// buckets by probability instead, and only the buckets in which something is decided are sorted.
TokenId Sampler::draw(double largest, const SamplingParams& params, double u) {
  const Scale scale(largest, params.temperature);
  const Kept kept = keep(scale, params.top_p);
  const double target = u * kept.weight;
  double below = 0;
  size_t bucket = 0;
  while (bucket < kept.bucket && below + bucket_weights_[bucket] <= target)
    below += bucket_weights_[bucket++];
  sort_bucket(bucket, scale);
  const size_t last = std::min(bucket == kept.bucket ? kept.count : kAll, scratch_.size()) - 1;
  for (size_t i = 0; i < last; ++i) {
    below += scale.weight(scratch_[i]);
    if (below > target) return TokenId{scratch_[i].id};
  }
  return TokenId{scratch_[last].id};
}

Result<Distribution> Sampler::distribution(std::span<const float> logits,
                                           const SampleRequest& request) {
  OCTAVO_CHECK_OK(adjust(logits, request));
  OCTAVO_TRY(const TokenId best, find_best());
  if (is_greedy(request.params)) return Distribution{{{best, 1}}};
  const double largest = logits_[raw(best)];
  keep_candidates(largest, request.params);
  const Scale scale(largest, request.params.temperature);
  const Kept kept = keep(scale, request.params.top_p);
  sort_bucket(kept.bucket, scale);
  const Candidate last = scratch_[std::min(kept.count, scratch_.size()) - 1];
  Distribution result;
  for (const Candidate& c : candidates_)
    if (!before(last, c)) result.entries.push_back({TokenId{c.id}, scale.weight(c) / kept.weight});
  return result;
}

Sampler::Kept Sampler::keep(const Scale& scale, double share) {
  bucket_weights_.fill(0);
  Kept all{.bucket = 0, .count = kAll, .weight = 0};
  for (const Candidate& c : candidates_) {
    const size_t bucket = scale.bucket(c);
    bucket_weights_[bucket] += scale.weight(c);
    all.bucket = std::max(all.bucket, bucket);
  }
  for (size_t bucket = 0; bucket <= all.bucket; ++bucket) all.weight += bucket_weights_[bucket];
  return share < 1 ? most_probable(share, scale, all) : all;
}

// Of them the most probable ones that make up `share` of the weight, at least one.
Sampler::Kept Sampler::most_probable(double share, const Scale& scale, const Kept& all) {
  const double enough = share * all.weight;
  Kept kept;
  while (kept.bucket < all.bucket && kept.weight + bucket_weights_[kept.bucket] < enough)
    kept.weight += bucket_weights_[kept.bucket++];
  sort_bucket(kept.bucket, scale);
  do kept.weight += scale.weight(scratch_[kept.count]);
  while (++kept.count < scratch_.size() && kept.weight < enough);
  return kept;
}

// Its candidates to scratch_, the most probable first.
void Sampler::sort_bucket(size_t bucket, const Scale& scale) {
  scratch_.clear();
  for (const Candidate& c : candidates_)
    if (scale.bucket(c) == bucket) scratch_.push_back(c);
  std::sort(scratch_.begin(), scratch_.end(), before);
}

}  // namespace octavo
