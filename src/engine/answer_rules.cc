#include "engine/answer_rules.h"

#include <utility>

#include "engine/bad_words.h"

namespace octavo {

Result<std::shared_ptr<const AnswerRules>> take_answer_rules(SamplingParams& params,
                                                             const Tokenizer& tokenizer,
                                                             int num_tokens) {
  OCTAVO_TRY(const auto words, encode_bad_words(params.bad_words, tokenizer));
  auto rules = std::make_shared<AnswerRules>();
  OCTAVO_TRY(rules->tokens, TokenRules::create(params, words, num_tokens));
  rules->stops = StopStrings(std::exchange(params.stop, {}));
  params.stop_token_ids = {};
  params.logit_bias = {};
  params.allowed_token_ids = {};
  params.bad_words = {};
  return rules;
}

}  // namespace octavo
