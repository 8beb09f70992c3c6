// The messages of a chat request, before any template sees them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "server/api_error.h"

namespace octavo {

// A list, not empty, of objects with a known role and content as text or text parts; content may be
// missing for the assistant only, which may have tool_calls, reasoning_content (or reasoning) and a
// refusal. A tool's message has the tool_call_id that it answers. What OpenAI's API has beside it
// (images, audio, files, the old function_call) is 400 "unsupported_parameter".
ApiResult<void> check_messages(const nlohmann::ordered_json& messages);

// The text of OpenAI's `prediction`: {"type": "content", "content": text or text parts}.
ApiResult<std::string> read_prediction(const nlohmann::ordered_json& prediction);

}  // namespace octavo
