// The lists of a request's parameters, made ready once for all of its steps and choices: stop
// strings, and what is said of single tokens. Making them may take a while, so it is never done on
// the engine's thread.
#pragma once

#include <memory>

#include "base/result.h"
#include "core/sampling_params.h"
#include "engine/stop_strings.h"
#include "sampling/token_rules.h"
#include "text/tokenizer.h"

namespace octavo {

struct AnswerRules {
  TokenRules tokens;
  StopStrings stops;
};

// Takes stop, stop_token_ids, logit_bias, allowed_token_ids and bad_words out of the parameters,
// which are valid: those of several prompts can then be copied for little. num_tokens: that may be
// drawn. Errors: those of encode_bad_words().
Result<std::shared_ptr<const AnswerRules>> take_answer_rules(SamplingParams& params,
                                                             const Tokenizer& tokenizer,
                                                             int num_tokens);

}  // namespace octavo
