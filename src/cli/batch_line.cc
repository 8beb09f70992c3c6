#include "cli/batch_line.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "cli/token_json.h"
#include "formats/quote.h"
#include "formats/shallow_json.h"
#include "llm/sampling_params_json.h"
#include "spec/draft_length.h"
#include "text/chat_tools.h"
#include "text/ordered_json.h"
#include "text/utf8.h"

namespace octavo::cli {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 32;  // the schemas of tools are deep

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorCode::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

Result<json> parse_object(std::string_view text) {
  if (const auto at = find_invalid_utf8(text)) return refuse("not UTF-8 at byte {}", *at);
  StrictJson parsed = parse_strict_json(text, kMaxDepth);
  if (parsed.too_deep) return refuse("nested deeper than {} levels", kMaxDepth);
  if (!parsed.root.is_object()) return refuse("not a JSON object");
  if (parsed.repeated_key) return refuse("{} is there twice", quote(*parsed.repeated_key));
  return std::move(parsed.root);
}

Result<bool> read_bool(const json& value, std::string_view name) {
  if (!value.is_boolean()) return refuse("{} must be true or false", name);
  return value.get<bool>();
}

Result<int> read_priority(const json& value) {
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  const bool is_huge = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{kLimit};
  if (!value.is_number_integer() || is_huge || value.get<int64_t>() < -kLimit)
    return refuse("priority must be an integer of 32 bits");
  return value.get<int>();
}

Result<int> read_num_speculative_tokens(const json& value) {
  const bool is_integer = value.is_number_integer();
  if (!is_integer || value.get<double>() < 0 || value.get<double>() > kMaxDraftTokens)
    return refuse("num_speculative_tokens must be an integer from 0 to {}", kMaxDraftTokens);
  return value.get<int>();
}

Result<void> check_id(const json& value, std::string_view name) {
  if (value.is_string() || value.is_number_integer() || value.is_null()) return {};
  return refuse("{} must be a string or an integer", name);
}

// One member of the line.
Result<void> read_member(const std::string& name, const json& value, BatchLine& line) {
  if (name == "prompt") {
    if (!value.is_string()) return refuse("prompt must be a string");
    line.content = value.get<std::string>();
  } else if (name == "prompt_token_ids") {
    OCTAVO_TRY(line.content, read_token_ids(value, name));
  } else if (name == "messages") {
    line.content = nlohmann::ordered_json(value);
  } else if (name == "sampling_params") {
    OCTAVO_CHECK_OK(read_sampling_params(value, line.params));
  } else if (name == "priority") {
    OCTAVO_TRY(line.priority, read_priority(value));
  } else if (name == "cache_salt") {
    if (!value.is_string()) return refuse("cache_salt must be a string");
    line.cache_salt = value.get<std::string>();
  } else if (name == "num_speculative_tokens") {
    OCTAVO_TRY(line.num_speculative_tokens, read_num_speculative_tokens(value));
  } else if (name == "add_generation_prompt") {
    OCTAVO_TRY(line.chat.add_generation_prompt, read_bool(value, name));
  } else if (name == "continue_final_message") {
    OCTAVO_TRY(line.chat.continue_final_message, read_bool(value, name));
  } else if (name == "tools") {
    line.tools = value;
  } else if (name == "chat_template_kwargs") {
    if (!value.is_object()) return refuse("chat_template_kwargs must be an object");
    line.chat_template_kwargs = value;
  } else if (name == "custom_id" || name == "id") {
    return check_id(value, name);
  } else {
    return refuse(
        "unknown name {}; a line has one of prompt, prompt_token_ids and messages, and may have "
        "sampling_params, priority, cache_salt, num_speculative_tokens, custom_id, id and, beside "
        "messages, "
        "add_generation_prompt, continue_final_message, tools and chat_template_kwargs",
        quote(name));
  }
  return {};
}

Result<BatchLine> read_line(const json& object, const SamplingParams& defaults) {
  BatchLine line;
  line.params = defaults;
  const auto given =
      object.count("prompt") + object.count("prompt_token_ids") + object.count("messages");
  if (given != 1)
    return refuse("needs exactly one of prompt, prompt_token_ids and messages, and has {}",
                  given == 0 ? "none" : "several");
  for (const std::string_view name :
       {"add_generation_prompt", "continue_final_message", "tools", "chat_template_kwargs"})
    if (object.contains(name) && !object.contains("messages"))
      return refuse("{} needs messages", name);
  for (const auto& [name, value] : object.items()) OCTAVO_CHECK_OK(read_member(name, value, line));
  if (!line.tools.is_null())
    if (const auto checked = check_tools(line.tools); !checked)
      return refuse("{}", checked.error().message);
  if (line.tools.is_array() && line.tools.empty()) line.tools = nullptr;
  OCTAVO_CHECK_OK(validate(line.params, std::numeric_limits<int>::max()));
  return line;
}

// What a template prints has its members in the order in which they were sent.
void keep_order(std::string_view text, BatchLine& line) {
  if (!std::holds_alternative<nlohmann::ordered_json>(line.content)) return;
  auto ordered = parse_ordered_json(text);
  line.content = std::move(ordered["messages"]);
  if (!line.tools.is_null()) line.tools = std::move(ordered["tools"]);
  if (!line.chat_template_kwargs.is_null())
    line.chat_template_kwargs = std::move(ordered["chat_template_kwargs"]);
}

}  // namespace

ParsedLine parse_batch_line(std::string_view text, const SamplingParams& defaults) {
  auto object = parse_object(text);
  if (!object) return {tl::make_unexpected(object.error())};
  ParsedLine parsed{read_line(*object, defaults)};
  if (parsed.line) keep_order(text, *parsed.line);
  for (const std::string name : {"custom_id", "id"})
    if (object->contains(name) && check_id((*object)[name], name))
      parsed.echo[name] = (*object)[name];
  return parsed;
}

}  // namespace octavo::cli
