// A line of OpenAI's batch files: a request to a route of the API, and its result.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/result_file.h"
#include "http/message.h"

namespace octavo::cli {

// Whether a file with this line is one of OpenAI's; nothing: the line does not tell.
std::optional<bool> is_openai_batch_line(std::string_view text);

struct OpenAiLine {
  std::string url;   // "/v1/chat/completions"
  std::string body;  // JSON, its members in their order
};

struct ParsedOpenAiLine {
  Result<OpenAiLine> line;
  nlohmann::ordered_json custom_id = nullptr;  // also of a line that is refused, if it has one
};

// default_max_tokens: for a body that says nothing of it. invalid_argument, naming the field.
ParsedOpenAiLine parse_openai_line(std::string_view text, std::optional<int> default_max_tokens);

// Results in OpenAI's shape; where the line stands and its hash are in `id`.
extern const ResultFormat kOpenAiFormat;
// "batch_req_3_0123456789abcdef"
std::string openai_result_id(const ResultHead& head);

struct OpenAiResult {
  std::string text;  // a line
  std::optional<ErrorCode> error;
  int64_t tokens = 0;  // generated
};
OpenAiResult openai_result(const ResultHead& head, const nlohmann::ordered_json& custom_id,
                           const http::Response& response);
// Of a line that is no request.
OpenAiResult openai_result(const ResultHead& head, const nlohmann::ordered_json& custom_id,
                           const Error& error);

}  // namespace octavo::cli
