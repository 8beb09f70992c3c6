// SamplingParams as JSON, with vLLM's names.
#pragma once

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "core/sampling_params.h"

namespace octavo {

// Sets what the object names and leaves the rest. null unsets what can be unset (seed, max_tokens,
// logprobs, prompt_logprobs, stop, stop_token_ids, logit_bias, allowed_token_ids, bad_words). Only
// types and the range of the type are checked: validate() does the rest. invalid_argument, naming
// the field, for a name that is not known and a value of the wrong type.
Result<void> read_sampling_params(const nlohmann::json& object, SamplingParams& params);

// Every field.
nlohmann::ordered_json to_json(const SamplingParams& params);

}  // namespace octavo
