// One row of logits in, one token out. The order of operations is fixed:
//   check for NaN and infinity; logprobs from the untouched row; logit_bias; repetition, frequency
//   and presence penalty; allowed_token_ids, the mask, bad words, min_tokens; then either the
//   largest logit (temperature 0, ties to the lower id), or temperature, min_p, top_k, top_p and a
//   draw.
// The draw inverts the cumulative distribution over the kept tokens, most probable first (ties:
// lower id first), at uniform(seed, choice, position). Equal inputs give the equal token, whatever
// else is in the batch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "core/sampling_params.h"
#include "sampling/distribution.h"
#include "sampling/logits.h"
#include "sampling/logprobs.h"
#include "sampling/token_rules.h"

namespace octavo {

// The whole sequence so far. Stateless on purpose: after preemption or a cache hit nothing has to
// be rebuilt.
struct TokenHistory {
  std::span<const TokenId> prompt;
  std::span<const TokenId> generated;

  // Of the token that comes next; keys the draw.
  uint64_t position() const { return prompt.size() + generated.size(); }
};

struct SampleRequest {
  const SamplingParams& params;  // validated; params.seed is not read
  uint64_t seed;                 // params.seed, or a fresh one chosen once for the request
  uint32_t choice = 0;           // index of the answer among params.n
  TokenHistory history;
  std::span<const TokenId> eog;  // end an answer; barred by min_tokens like params.stop_token_ids
  // Made of the lists of params, which are not read. nullptr: they are empty.
  const TokenRules* rules = nullptr;
  // No other tokens are drawn: a bit for each, as TokenMask sets them. Empty: any may be.
  std::span<const uint64_t> allowed = {};
};

// What may come next, drawn from q one after the other and none twice. q nullptr: certain, for
// whoever made them.
struct Guesses {
  std::span<const TokenId> tokens = {};
  const Distribution* q = nullptr;
};

struct Sample {
  TokenId token;
  std::optional<TokenLogprobs> logprobs;  // where params.logprobs asks for them
};

// Holds buffers only, no state between calls. One per thread.
class Sampler {
 public:
  // Only ids below `num_tokens` (the tokenizer's size) are produced or listed; rows may be longer
  // (padding).
  explicit Sampler(int num_tokens);

  int num_tokens() const { return num_tokens_; }

  // Errors: numeric_error for a bad row; invalid_argument if every token that has a finite logit is
  // barred, if the row or the mask is too short, or if an id of the history is no token.
  Result<Sample> sample(std::span<const float> logits, const SampleRequest& request);

  // A token with the same probabilities as those of sample(), preferably one of the guesses. Where
  // they are certain or the request is greedy it is sample()'s own: that is one of them as often as
  // can be. Errors as above.
  Result<Sample> sample_among(const Guesses& guesses, std::span<const float> logits,
                              const SampleRequest& request);

  // What sample() draws its token from: over many seeds its tokens come with these probabilities.
  // Errors as above.
  Result<Distribution> distribution(std::span<const float> logits, const SampleRequest& request);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  struct Scale;

  Result<std::span<const float>> adjust(std::span<const float> logits,
                                        const SampleRequest& request);
  Result<void> check_ids(const SampleRequest& request) const;
  Result<void> check_mask(std::span<const uint64_t> mask) const;
  void apply_bias(std::span<const LogitBias> biases);
  void apply_penalties(const SamplingParams& params, const TokenHistory& history);
  void count_tokens(const TokenHistory& history);
  void bar_unmasked(std::span<const uint64_t> allowed);
  void bar_bad_words(const TokenRules& rules, std::span<const TokenId> answer);
  void bar_end_of_answer(const SampleRequest& request, const TokenRules& rules);
  Result<TokenId> find_best() const;
  Result<TokenId> choose(const SampleRequest& request);
  Result<Sample> with_logprobs(TokenId token, std::span<const float> row,
                               const SampleRequest& request) const;
  void keep_candidates(double largest, const SamplingParams& params);
  void keep_top_k(size_t k);
  TokenId draw(double largest, const SamplingParams& params, double u);

  // Of what is left for the draw: all of the buckets before `bucket`, and of it the `count` most
  // probable candidates.
  struct Kept {
    size_t bucket = 0, count = 0;
    double weight = 0;
  };
  Kept keep(const Scale& scale, double share);
  Kept most_probable(double share, const Scale& scale, const Kept& all);
  void sort_bucket(size_t bucket, const Scale& scale);
  static bool before(const Candidate& a, const Candidate& b);

  static constexpr size_t kAll = static_cast<size_t>(-1);
  // Probabilities down to e^-60 of the best one, sixteen buckets to each factor of e.
  static constexpr float kBucketsPerNat = 16;
  static constexpr size_t kBuckets = 60 * 16 + 1;

  int num_tokens_;
  std::vector<float> logits_;  // the row, adjusted
  std::vector<Candidate> candidates_, scratch_;
  std::array<double, kBuckets> bucket_weights_{};
  std::vector<int32_t> generated_count_;  // per token; kUnseen outside apply_penalties()
  std::vector<int32_t> seen_;             // tokens of prompt and answer, each once
  std::vector<TokenId> barred_;
};

}  // namespace octavo
