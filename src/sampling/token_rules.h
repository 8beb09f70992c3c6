// What a request's parameters say of single tokens, made ready once: what a step pays for them is
// bounded by the vocabulary, however long the lists were that a client sent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "core/sampling_params.h"

namespace octavo {

class TokenRules {
 public:
  TokenRules() = default;  // rules nothing out

  // Of logit_bias, allowed_token_ids and stop_token_ids, each of whose ids counts once; bad_words:
  // those of the parameters as tokens, none empty. invalid_argument for an id that is no token.
  static Result<TokenRules> create(const SamplingParams& params,
                                   std::span<const std::vector<TokenId>> bad_words, int num_tokens);

  int num_tokens() const { return num_tokens_; }  // of the vocabulary; 0: nothing is ruled out
  std::span<const LogitBias> logit_bias() const { return logit_bias_; }
  std::span<const TokenId> stop_tokens() const { return stop_tokens_; }  // ascending
  bool is_stop_token(TokenId id) const;
  // A bit for each token, as TokenMask sets them. Empty: any may be drawn.
  std::span<const uint64_t> allowed() const { return allowed_; }
  // Appends the tokens that would complete a bad word behind this answer. Takes as many steps as
  // the longest word has tokens, and not as there are words.
  void add_barred_after(std::span<const TokenId> answer, std::vector<TokenId>& barred) const;

 private:
  struct BadWord {
    std::vector<TokenId> before;  // all but the last token, the one next to it first
    TokenId last;
    auto operator<=>(const BadWord&) const = default;
  };

  void set_allowed(std::span<const TokenId> ids);
  void set_bad_words(std::span<const std::vector<TokenId>> words);

  int num_tokens_ = 0;
  std::vector<LogitBias> logit_bias_;
  std::vector<TokenId> stop_tokens_;
  std::vector<uint64_t> allowed_;
  std::vector<BadWord> bad_words_;  // ascending, so that those with the same ending are neighbours
};

}  // namespace octavo
