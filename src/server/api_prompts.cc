#include "server/api_prompts.h"

#include <fmt/format.h>

#include "server/api_fields.h"
#include "server/api_values.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

tl::unexpected<ApiError> refuse_prompt(std::string message) {
  return refuse_field("prompt", std::move(message));
}

ApiResult<PromptInput> read_text(Json& value, const std::string& place) {
  if (!value.is_string())
    return refuse_prompt(place + " must be a string, as the first of the list is");
  if (value.get_ref<const std::string&>().empty())
    return refuse_prompt(place + " is empty; give at least one character");
  return std::move(value.get_ref<std::string&>());
}

ApiResult<PromptInput> read_ids(const Json& value, const std::string& place,
                                const ApiLimits& limits) {
  OCTAVO_TRY(std::vector<TokenId> ids, read_token_ids(value, place, limits));
  if (ids.empty()) return refuse_prompt(place + " is empty; give at least one token");
  return ids;
}

ApiResult<std::vector<PromptInput>> read_list(Json& list, const ApiLimits& limits) {
  if (list.size() > static_cast<size_t>(limits.max_choices))
    return refuse_prompt(
        fmt::format("prompt is a list of {}; allowed: 1 to {}", list.size(), limits.max_choices));
  const bool are_texts = list[0].is_string();
  std::vector<PromptInput> prompts;
  prompts.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = fmt::format("prompt[{}]", i);
    OCTAVO_TRY(PromptInput prompt,
               are_texts ? read_text(list[i], place) : read_ids(list[i], place, limits));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace

ApiResult<std::vector<PromptInput>> read_prompts(Json& value, const ApiLimits& limits) {
  std::vector<PromptInput> prompts;
  if (value.is_string()) {
    OCTAVO_TRY(prompts.emplace_back(), read_text(value, "prompt"));
    return prompts;
  }
  if (!value.is_array())
    return refuse_prompt("prompt must be a string, a list of strings, or token ids");
  if (value.empty()) return refuse_prompt("prompt is empty; give at least one");
  if (!value[0].is_number()) return read_list(value, limits);
  OCTAVO_TRY(prompts.emplace_back(), read_ids(value, "prompt", limits));
  return prompts;
}

ApiResult<std::vector<TokenId>> read_token_ids(const Json& value, std::string_view place,
                                               const ApiLimits& limits) {
  const std::string param(place.substr(0, place.find('[')));
  std::vector<TokenId> ids;
  if (!read_value(value, ids))
    return refuse_field(param, fmt::format("{} must be a list of token ids", place));
  for (size_t i = 0; i < ids.size(); ++i)
    if (raw(ids[i]) < 0 || raw(ids[i]) >= limits.vocab_size)
      return refuse_field(param, fmt::format("{}[{}] is {}; allowed: token ids 0 to {}", place, i,
                                             raw(ids[i]), limits.vocab_size - 1));
  return ids;
}

}  // namespace octavo
