// Fields of a chat request that are about tools.
#pragma once

#include <nlohmann/json.hpp>

#include "server/api_error.h"

namespace octavo {

// text/chat_tools.h; 400 names the place.
ApiResult<void> check_tools_field(const nlohmann::ordered_json& tools);

// Whether the model may call tools. 400 for what nothing enforces (required, a named function), and
// for a name that is not one of the tools (null: there are none).
ApiResult<bool> read_choice_of_tools(const nlohmann::ordered_json& choice,
                                     const nlohmann::ordered_json& tools);

// The calls of an assistant's message: a list of {"id", "type": "function", "function": {"name",
// "arguments"}}, arguments a JSON object or its text. place: "messages[1].tool_calls".
ApiResult<void> check_tool_calls(const nlohmann::ordered_json& calls, const std::string& place);

}  // namespace octavo
