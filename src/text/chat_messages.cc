// Messages from clients into the one shape a template expects.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/chat_template.h"
#include "text/json_pieces.h"
#include "text/ordered_json.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

tl::unexpected<Error> invalid(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

Result<std::string> part_text(const Json& part, const std::string& place) {
  if (!part.is_object()) return invalid(place + " must be an object");
  const auto type = part.find("type");
  if (type == part.end() || !type->is_string()) return invalid(place + " needs a string 'type'");
  const std::string& kind = type->get_ref<const std::string&>();
  if (kind != "text")
    return invalid(fmt::format("{}.type is '{}'; only 'text' is known", place, kind));
  const auto text = part.find("text");
  if (text == part.end() || !text->is_string()) return invalid(place + ".text must be a string");
  return text->get<std::string>();
}

Result<std::string> joined_text(const Json& content, const std::string& place) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) return invalid(place + " must be a string or a list of parts");
  std::string joined;
  for (size_t i = 0; i < content.size(); ++i) {
    OCTAVO_TRY(const std::string text, part_text(content[i], fmt::format("{}[{}]", place, i)));
    joined += text;
  }
  return joined;
}

// Arguments of all calls of a conversation together: a bound on memory, which objects take many
// times the bytes of their text of.
constexpr size_t kMaxArgumentBytes = size_t{4} << 20;

// In the shape of the template, from JSON text or an object.
Result<void> shape_arguments(Json& arguments, const std::string& place, bool as_text,
                             size_t& num_bytes) {
  if (arguments.is_object()) {
    if (as_text) arguments = arguments.dump(-1, ' ', false, Json::error_handler_t::replace);
    return {};
  }
  if (!arguments.is_string()) return invalid(place + " must be a string of JSON");
  const std::string& text = arguments.get_ref<const std::string&>();
  if ((num_bytes += text.size()) > kMaxArgumentBytes)
    return invalid(
        fmt::format("{}: the arguments of all calls have over {} bytes; leave out old ones", place,
                    kMaxArgumentBytes));
  if (text.empty()) {
    arguments = as_text ? Json("{}") : Json::object();
    return {};
  }
  const auto trimmed = trim_json_space(text);
  if (!trimmed.starts_with('{') || !is_json(trimmed))
    return invalid(
        fmt::format("{} is no JSON object of at most {} levels", place, JsonEnd::kMaxDepth));
  if (!as_text) arguments = parse_ordered_json(trimmed);
  return {};
}

Result<void> shape_calls(Json& calls, const std::string& place, const ChatTemplate& chat_template,
                         size_t& num_bytes) {
  if (!calls.is_array()) return invalid(place + " must be a list");
  if (!calls.empty() && !chat_template.shows_tool_calls())
    return invalid(place + ": the chat template has no place for calls of tools; leave them out");
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string at = fmt::format("{}[{}].function", place, i);
    Json& call = calls[i];
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object())
      return invalid(at + " must be an object");
    Json& function = call["function"];
    if (!function.contains("name") || !function["name"].is_string())
      return invalid(at + ".name must be a string");
    OCTAVO_CHECK_OK(shape_arguments(function["arguments"], at + ".arguments",
                                    chat_template.expects_argument_text(), num_bytes));
  }
  return {};
}

Result<Json> normalize_message(const Json& message, const std::string& place,
                               const ChatTemplate& chat_template, size_t& argument_bytes) {
  const bool as_parts = chat_template.expects_content_parts();
  if (!message.is_object()) return invalid(place + " must be an object");
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string() || role->get_ref<const std::string&>().empty())
    return invalid(place + " needs a 'role', a string such as \"user\"");
  Json result = message;
  if (const auto calls = result.find("tool_calls"); calls != result.end()) {
    if (calls->is_null() || calls->empty())
      result.erase(calls);
    else
      OCTAVO_CHECK_OK(shape_calls(*calls, place + ".tool_calls", chat_template, argument_bytes));
  }
  const auto content = message.find("content");
  if (content == message.end() || content->is_null()) {
    if (*role != "assistant") return invalid(place + " needs a 'content'");
    result["content"] = nullptr;
    return result;
  }
  OCTAVO_TRY(std::string text, joined_text(*content, place + ".content"));
  if (as_parts)
    result["content"] = Json::array({{{"type", "text"}, {"text", std::move(text)}}});
  else
    result["content"] = std::move(text);
  return result;
}

}  // namespace

Result<Json> normalize_messages(const Json& messages, const ChatTemplate& chat_template) {
  if (!messages.is_array() || messages.empty())
    return invalid("messages must be a list of at least one message");
  Json result = Json::array();
  size_t argument_bytes = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    OCTAVO_TRY(Json message, normalize_message(messages[i], fmt::format("messages[{}]", i),
                                               chat_template, argument_bytes));
    result.push_back(std::move(message));
  }
  return result;
}

}  // namespace octavo
