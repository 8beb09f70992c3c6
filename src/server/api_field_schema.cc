// What a field is in the schema, with the limits of the server in it.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "server/api_fields.h"
#include "spec/draft_length.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kText = R"({"type":"string"})";
constexpr std::string_view kEmptyText = R"({"enum":[""]})";
constexpr std::string_view kNothing = R"({"enum":[]})";

// Of the numbers 0 to `most`, as they are written.
std::string pattern_up_to(int most) {
  const std::string digits = std::to_string(most);
  std::string pattern = "0";
  if (digits.size() > 1) pattern += fmt::format("|[1-9][0-9]{{0,{}}}", digits.size() - 2);
  for (size_t i = 0; i < digits.size(); ++i) {
    const char lowest = i == 0 ? '1' : '0', next = static_cast<char>(digits[i] - 1);
    if (next >= lowest)
      pattern += fmt::format("|{}[{}-{}][0-9]{{{}}}", digits.substr(0, i), lowest, next,
                             digits.size() - 1 - i);
  }
  return most > 0 ? pattern + "|" + digits : pattern;
}

std::string with_limits(std::string text, const ApiLimits& limits) {
  constexpr int kLargest = std::numeric_limits<int>::max();
  const bool has_cap = limits.max_logprobs != kNoLogprobsCap;
  const int last_token = limits.vocab_size > 0 ? limits.vocab_size - 1 : kLargest;
  const std::pair<std::string_view, int> numbers[] = {
      {"@last_token", last_token},
      {"@min_priority", limits.has_priorities ? std::numeric_limits<int>::min() : 0},
      {"@max_priority", limits.has_priorities ? kLargest : 0},
      {"@max_model_len", limits.max_model_len > 0 ? limits.max_model_len : kLargest},
      {"@max_choices", std::min(limits.max_choices, kMaxChoices)},
      {"@embedding_size", limits.embedding_size > 0 ? limits.embedding_size : kLargest},
      {"@least_dimensions", limits.matryoshka ? 1 : std::max(limits.embedding_size, 1)},
      {"@min_logprobs", may_ask_for_all_logprobs(limits.max_logprobs, limits.vocab_size) ? -1 : 0},
      {"@max_draft_tokens", kMaxDraftTokens},
      {"@max_logprobs", has_cap ? limits.max_logprobs : kLargest},
  };
  const auto replace = [&](std::string_view word, std::string_view with) {
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;)
      text.replace(at, word.size(), with);
  };
  for (const auto& [word, number] : numbers) replace(word, std::to_string(number));
  replace("@token_pattern", pattern_up_to(last_token));
  replace("@chat_template", limits.trust_request_chat_template ? kText : kNothing);
  replace("@suffix", limits.fills_in ? kText : kEmptyText);
  return text;
}

void allow_null(Json& schema) {
  if (schema.contains("enum")) schema["enum"].push_back(nullptr);
  if (schema.contains("anyOf")) schema["anyOf"].push_back({{"type", "null"}});
  if (schema.contains("type")) schema["type"] = Json::array({schema["type"], "null"});
}

}  // namespace

Json schema_of(const ApiField& field, const ApiLimits& limits, bool nullable) {
  Json schema = field.use == FieldUse::inert
                    ? Json::object()
                    : Json::parse(with_limits(std::string(field.schema), limits));
  if (nullable) allow_null(schema);
  schema["description"] = with_limits(std::string(field.help), limits);
  return schema;
}

}  // namespace octavo
