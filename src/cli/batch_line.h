// One line of octavo generate --input: what is asked for.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "core/sampling_params.h"
#include "llm/prompt.h"

namespace octavo::cli {

struct BatchLine {
  std::variant<std::string, std::vector<TokenId>, nlohmann::ordered_json> content;  // messages
  ChatOptions chat;                                                                 // of messages
  nlohmann::ordered_json tools = nullptr, chat_template_kwargs = nullptr;           // of messages
  SamplingParams params;
  int priority = 0;
  std::string cache_salt = {};
  std::optional<int> num_speculative_tokens = {};  // as in Request
};

struct ParsedLine {
  Result<BatchLine> line;
  // custom_id and id, if the line has them: repeated in its result, also if it is refused.
  nlohmann::ordered_json echo = nlohmann::ordered_json::object();
};

inline constexpr size_t kMaxLineBytes = size_t{16} << 20;

// `defaults` holds where the line says nothing. invalid_argument, naming the field, for what is not
// JSON in UTF-8, an unknown or a repeated name, a value of the wrong type or out of range.
ParsedLine parse_batch_line(std::string_view text, const SamplingParams& defaults);

}  // namespace octavo::cli
