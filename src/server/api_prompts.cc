#include "server/api_prompts.h"

#include <fmt/format.h>

#include <utility>

#include "server/api_fields.h"
#include "server/api_values.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

// `place` begins with the field's name.
tl::unexpected<ApiError> refuse(std::string_view place, std::string_view why) {
  return refuse_field(place.substr(0, place.find('[')), fmt::format("{} {}", place, why));
}

ApiResult<PromptInput> read_text(Json& value, const std::string& place) {
  if (!value.is_string()) return refuse(place, "must be a string, as the first of the list is");
  if (value.get_ref<const std::string&>().empty())
    return refuse(place, "is empty; give at least one character");
  return std::move(value.get_ref<std::string&>());
}

ApiResult<PromptInput> read_ids(const Json& value, const std::string& place,
                                const ApiLimits& limits) {
  OCTAVO_TRY(std::vector<TokenId> ids, read_token_ids(value, place, limits));
  if (ids.empty()) return refuse(place, "is empty; give at least one token");
  return ids;
}

ApiResult<std::vector<PromptInput>> read_list(Json& list, std::string_view field, int max_prompts,
                                              const ApiLimits& limits) {
  if (std::cmp_greater(list.size(), max_prompts))
    return refuse(field,
                  fmt::format("is a list of {}; allowed: 1 to {}", list.size(), max_prompts));
  const bool are_texts = list[0].is_string();
  std::vector<PromptInput> prompts;
  prompts.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", field, i);
    OCTAVO_TRY(PromptInput prompt,
               are_texts ? read_text(list[i], place) : read_ids(list[i], place, limits));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace

ApiResult<std::vector<PromptInput>> read_prompts(Json& value, std::string_view field,
                                                 int max_prompts, const ApiLimits& limits) {
  std::vector<PromptInput> prompts;
  if (value.is_string()) {
    OCTAVO_TRY(prompts.emplace_back(), read_text(value, std::string(field)));
    return prompts;
  }
  if (!value.is_array()) return refuse(field, "must be a string, a list of strings, or token ids");
  if (value.empty()) return refuse(field, "is empty; give at least one");
  if (!value[0].is_number()) return read_list(value, field, max_prompts, limits);
  OCTAVO_TRY(prompts.emplace_back(), read_ids(value, std::string(field), limits));
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
