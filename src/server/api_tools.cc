#include "server/api_tools.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/quote.h"
#include "server/api_fields.h"
#include "text/chat_tools.h"
#include "text/json_pieces.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

bool is_offered(const Json& tools, const std::string& name) {
  return std::any_of(tools.begin(), tools.end(),
                     [&](const Json& tool) { return tool["function"]["name"] == name; });
}

// {"type": "function", "function": {"name": ...}}
ApiResult<bool> read_named_choice(const Json& choice, const Json& tools) {
  const auto type = choice.find("type");
  if (type == choice.end() || !type->is_string())
    return refuse_field("tool_choice.type", "tool_choice.type must be \"function\"");
  if (*type != "function")
    return refuse_unsupported("tool_choice",
                              fmt::format("tool_choice of type {} is not served; use \"auto\"",
                                          quote(type->get_ref<const std::string&>())));
  const Json function = choice.value("function", Json());
  if (!function.is_object() || !function.contains("name") || !function["name"].is_string())
    return refuse_field("tool_choice.function.name",
                        "tool_choice.function.name must be the name of one of the tools");
  const auto name = function["name"].get<std::string>();
  if (!is_offered(tools, name))
    return refuse_field(
        "tool_choice.function.name",
        fmt::format("tool_choice.function.name is {}, which is none of the tools", quote(name)));
  return refuse_unsupported("tool_choice",
                            "tool_choice with a named function is not served: nothing makes the "
                            "model call it; use \"auto\", and offer that tool alone");
}

ApiResult<void> check_call(const Json& call, const std::string& place) {
  if (!call.is_object()) return refuse_field(place, place + " must be an object");
  const auto id = call.find("id");
  if (id == call.end() || !id->is_string())
    return refuse_field(place + ".id", place + ".id must be a string");
  const auto type = call.find("type");
  if (type != call.end() && !type->is_null() && *type != "function")
    return refuse_field(place + ".type", place + ".type must be \"function\"");
  const std::string at = place + ".function";
  const auto function = call.find("function");
  if (function == call.end() || !function->is_object())
    return refuse_field(at, at + " must be an object");
  const auto name = function->find("name");
  if (name == function->end() || !name->is_string() || name->empty())
    return refuse_field(at + ".name", at + ".name must be a string");
  const auto arguments = function->find("arguments");
  const bool is_object = arguments != function->end() && arguments->is_object();
  if (!is_object && (arguments == function->end() || !arguments->is_string()))
    return refuse_field(at + ".arguments", at + ".arguments must be a string of JSON");
  if (is_object) return {};
  const auto text = trim_json_space(arguments->get_ref<const std::string&>());
  if (text.empty() || (text.starts_with('{') && is_json(text))) return {};
  return refuse_field(
      at + ".arguments",
      fmt::format("{}.arguments is no JSON object of at most {} levels", at, JsonEnd::kMaxDepth));
}

}  // namespace

ApiResult<void> check_tools_field(const Json& tools) {
  const auto checked = check_tools(tools);
  if (!checked) return refuse_field(checked.error().place, checked.error().message);
  return {};
}

ApiResult<bool> read_choice_of_tools(const Json& choice, const Json& tools) {
  if (choice.is_object()) return read_named_choice(choice, tools);
  if (choice == "none") return false;
  if (choice == "auto") return true;
  if (choice != "required")
    return refuse_field("tool_choice",
                        "tool_choice must be \"none\", \"auto\", \"required\" or an object that "
                        "names a function");
  if (tools.is_null()) return refuse_field("tool_choice", "tool_choice needs tools");
  return refuse_unsupported("tool_choice",
                            "tool_choice \"required\" is not served: nothing makes the model call "
                            "a tool; use \"auto\"");
}

ApiResult<void> check_tool_calls(const Json& calls, const std::string& place) {
  for (size_t i = 0; i < calls.size(); ++i)
    OCTAVO_CHECK_OK(check_call(calls[i], fmt::format("{}[{}]", place, i)));
  return {};
}

}  // namespace octavo
