// The list of tools that a client offers to a model, as in OpenAI's API.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <tl/expected.hpp>

namespace octavo {

struct ToolsFault {
  std::string place;    // "tools[0].function.name"
  std::string message;  // a sentence that names it
};

// A list of {"type": "function", "function": {"name", "description", "parameters", "strict"}} with
// names that differ; all but the name may be missing or null. What else stands there is the
// template's.
tl::expected<void, ToolsFault> check_tools(const nlohmann::ordered_json& tools);

}  // namespace octavo
