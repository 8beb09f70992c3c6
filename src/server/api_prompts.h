// The prompts of a completion: one or many, as text or as token ids.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "server/api_error.h"
#include "server/api_request.h"

namespace octavo {

// `field` (for messages) is a text, a list of texts, a list of token ids, or a list of such lists;
// none is empty, kinds are not mixed, ids are of the vocabulary, and there are at most max_prompts
// of them. Texts may be moved out of `value`.
ApiResult<std::vector<PromptInput>> read_prompts(nlohmann::ordered_json& value,
                                                 std::string_view field, int max_prompts,
                                                 const ApiLimits& limits);

// May be empty. `place` is for messages.
ApiResult<std::vector<TokenId>> read_token_ids(const nlohmann::ordered_json& value,
                                               std::string_view place, const ApiLimits& limits);

}  // namespace octavo
