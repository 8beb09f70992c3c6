// What a request asks of sampling, with the names and defaults of vLLM. Nothing is adjusted in
// silence: a value outside its range is refused by validate(), and every value inside it means what
// it says (temperature 1e-9 stays 1e-9).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/ids.h"

namespace octavo {

struct LogitBias {
  TokenId id;
  float bias;  // added to the token's logit, -100 to 100
};

struct SamplingParams {
  int n = 1;                                 // answers per prompt, 1 to kMaxChoices
  double temperature = 1.0;                  // finite, >= 0; 0 takes the most probable token
  double top_p = 1.0;                        // (0, 1]
  int top_k = 0;                             // at most this many tokens; 0 or -1: no limit
  double min_p = 0.0;                        // [0, 1], relative to the most probable token
  std::optional<uint64_t> seed = {};         // unset: a fresh one, which the answer reports
  double presence_penalty = 0.0;             // [-2, 2], once for each token that was generated
  double frequency_penalty = 0.0;            // [-2, 2], for each time a token was generated
  double repetition_penalty = 1.0;           // finite, > 0; each token of prompt or answer, once
  std::vector<LogitBias> logit_bias = {};    // an id may be named once
  std::vector<std::string> stop = {};        // end the answer; at most kMaxStopStrings, none empty
  std::vector<TokenId> stop_token_ids = {};  // no more than the vocabulary has
  bool ignore_eos = false;
  std::optional<int> max_tokens = 16;  // >= 0; unset: to the end of the context
  int min_tokens = 0;                  // no end of answer before this many tokens; <= max_tokens
  std::optional<int> logprobs =
      {};  // this many most probable tokens beside the chosen one; -1: all
  std::optional<int> prompt_logprobs = {};
  bool include_stop_str_in_output = false;
  bool skip_special_tokens = true;
  bool detokenize = true;                       // false: answers have no text, only token ids
  std::vector<TokenId> allowed_token_ids = {};  // no other is drawn; empty: any may be
  std::vector<std::string> bad_words = {};      // never written; at most kMaxBadWords, none empty
};

inline bool is_greedy(const SamplingParams& params) { return params.temperature == 0.0; }

inline constexpr int kMaxChoices = 1024;
inline constexpr size_t kMaxStopStrings = 64;
// Of one stop string: this much text is held back while it may be beginning.
inline constexpr size_t kMaxStopBytes = 4096;
inline constexpr size_t kMaxBadWords = 1024;
// Of all bad words together: they are encoded before the answer begins.
inline constexpr size_t kMaxBadWordsBytes = 64 << 10;
inline constexpr int kMaxLogprobs = 20;  // the cap of OpenAI's API and vLLM's default
inline constexpr int kNoLogprobsCap = -1;
bool may_ask_for_all_logprobs(int max_logprobs, int vocab_size);

// Refuses what lies outside the ranges above, NaN included. The error names field, value and range.
// `vocab_size` is the number of tokens of the tokenizer, which may be fewer than the rows of the
// output matrix. `max_logprobs` caps logprobs and prompt_logprobs; with kNoLogprobsCap any number
// is allowed. -1, for all, is allowed where the cap allows as many as there are tokens.
Result<void> validate(const SamplingParams& params, int vocab_size,
                      int max_logprobs = kMaxLogprobs);

}  // namespace octavo
