#include "sampling/token_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace octavo {
namespace {

Result<void> check_ids(std::span<const TokenId> ids, std::string_view what, int num_tokens) {
  for (const TokenId id : ids)
    if (raw(id) < 0 || raw(id) >= num_tokens)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} holds {}, which is no token; allowed: 0 to {}", what, raw(id),
                              num_tokens - 1));
  return {};
}

template <class T>
void make_set(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

}  // namespace

Result<TokenRules> TokenRules::create(const SamplingParams& params,
                                      std::span<const std::vector<TokenId>> bad_words,
                                      int num_tokens) {
  for (const LogitBias& bias : params.logit_bias)
    OCTAVO_CHECK_OK(check_ids({&bias.id, 1}, "logit_bias", num_tokens));
  OCTAVO_CHECK_OK(check_ids(params.stop_token_ids, "stop_token_ids", num_tokens));
  OCTAVO_CHECK_OK(check_ids(params.allowed_token_ids, "allowed_token_ids", num_tokens));
  for (const std::vector<TokenId>& word : bad_words)
    OCTAVO_CHECK_OK(check_ids(word, "bad_words", num_tokens));
  TokenRules rules;
  rules.num_tokens_ = num_tokens;
  rules.logit_bias_ = params.logit_bias;
  rules.stop_tokens_ = params.stop_token_ids;
  make_set(rules.stop_tokens_);
  rules.set_allowed(params.allowed_token_ids);
  rules.set_bad_words(bad_words);
  return rules;
}

void TokenRules::set_allowed(std::span<const TokenId> ids) {
  if (ids.empty()) return;
  allowed_.assign((static_cast<size_t>(num_tokens_) + 63) / 64, 0);
  for (const TokenId id : ids)
    allowed_[static_cast<size_t>(raw(id)) / 64] |= uint64_t{1} << raw(id) % 64;
}

void TokenRules::set_bad_words(std::span<const std::vector<TokenId>> words) {
  for (const std::vector<TokenId>& word : words)
    bad_words_.push_back({{word.rbegin() + 1, word.rend()}, word.back()});
  make_set(bad_words_);
}

bool TokenRules::is_stop_token(TokenId id) const {
  return std::binary_search(stop_tokens_.begin(), stop_tokens_.end(), id);
}

// [begin, end): the words whose tokens before the last are, as far as was looked, the answer's. The
// shorter ones come first.
void TokenRules::add_barred_after(std::span<const TokenId> answer,
                                  std::vector<TokenId>& barred) const {
  auto begin = bad_words_.begin(), end = bad_words_.end();
  for (size_t depth = 0;; ++depth) {
    for (; begin != end && begin->before.size() == depth; ++begin) barred.push_back(begin->last);
    if (begin == end || depth == answer.size()) return;
    const TokenId token = answer[answer.size() - 1 - depth];
    begin = std::partition_point(begin, end,
                                 [&](const BadWord& word) { return word.before[depth] < token; });
    end = std::partition_point(begin, end,
                               [&](const BadWord& word) { return word.before[depth] == token; });
  }
}

}  // namespace octavo
