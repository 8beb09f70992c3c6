#include "server/api_messages.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/quote.h"
#include "server/api_fields.h"
#include "server/api_tools.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool"};
constexpr std::string_view kOtherParts[] = {"image_url", "input_image", "image", "input_audio",
                                            "audio",     "audio_url",   "file",  "input_file",
                                            "video",     "video_url"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// What a client got as a refusal it may send back, in a part of its own.
ApiResult<void> check_refusal(const Json& part, const std::string& place) {
  const auto text = part.find("refusal");
  if (text != part.end() && text->is_string()) return {};
  return refuse_field(place + ".refusal", place + ".refusal must be a string");
}

ApiResult<void> check_part(const Json& part, const std::string& place, bool is_assistant) {
  if (!part.is_object()) return refuse_field(place, place + " must be an object");
  const auto type = part.find("type");
  if (type == part.end() || !type->is_string())
    return refuse_field(place + ".type", place + ".type must be a string, such as \"text\"");
  const auto& kind = type->get_ref<const std::string&>();
  if (is_one_of(kOtherParts, kind))
    return refuse_unsupported(
        place,
        fmt::format("{} is of type {}, which is not served; send text parts", place, quote(kind)));
  if (kind == "refusal" && is_assistant) return check_refusal(part, place);
  if (kind != "text")
    return refuse_field(place + ".type",
                        fmt::format("{}.type is {}; only 'text' is known", place, quote(kind)));
  const auto text = part.find("text");
  if (text == part.end() || !text->is_string())
    return refuse_field(place + ".text", place + ".text must be a string");
  return {};
}

ApiResult<void> check_content(const Json& content, const std::string& place,
                              bool is_assistant = false) {
  if (content.is_string()) return {};
  if (!content.is_array())
    return refuse_field(place, place + " must be a string or a list of parts");
  for (size_t i = 0; i < content.size(); ++i)
    OCTAVO_CHECK_OK(check_part(content[i], fmt::format("{}[{}]", place, i), is_assistant));
  return {};
}

ApiResult<void> check_role(const Json& message, const std::string& place) {
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string())
    return refuse_field(place, place + " must be a string, such as \"user\"");
  const auto& name = role->get_ref<const std::string&>();
  if (name == "function")
    return refuse_unsupported(
        place, fmt::format("{} is 'function', which is not served; use 'tool'", place));
  if (!is_one_of(kRoles, name))
    return refuse_field(
        place, fmt::format("{} is {}; known are {}", place, quote(name), fmt::join(kRoles, ", ")));
  return {};
}

ApiResult<void> check_text(const Json& message, std::string_view name, const std::string& place) {
  const auto field = message.find(name);
  if (field == message.end() || field->is_null() || field->is_string()) return {};
  const std::string param = fmt::format("{}.{}", place, name);
  return refuse_field(param, param + " must be a string");
}

ApiResult<void> check_calls(const Json& message, const std::string& place) {
  if (const auto old = message.find("function_call"); old != message.end() && !old->empty())
    return refuse_unsupported(place + ".function_call",
                              place + ".function_call is not served; use tool_calls");
  const auto calls = message.find("tool_calls");
  if (calls == message.end() || calls->is_null()) return {};
  const std::string param = place + ".tool_calls";
  if (!calls->is_array()) return refuse_field(param, param + " must be a list");
  if (message["role"] != "assistant" && !calls->empty())
    return refuse_field(param, param + " is for messages of the assistant");
  return calls->empty() ? ApiResult<void>() : check_tool_calls(*calls, param);
}

ApiResult<void> check_message(const Json& message, const std::string& place) {
  if (!message.is_object()) return refuse_field(place, place + " must be an object");
  OCTAVO_CHECK_OK(check_role(message, place + ".role"));
  OCTAVO_CHECK_OK(check_calls(message, place));
  for (const char* name : {"reasoning_content", "reasoning", "refusal", "name"})
    OCTAVO_CHECK_OK(check_text(message, name, place));
  OCTAVO_CHECK_OK(check_text(message, "tool_call_id", place));
  const auto answered = message.find("tool_call_id");
  if (message["role"] == "tool" && (answered == message.end() || answered->is_null()))
    return refuse_field(place + ".tool_call_id", place + ".tool_call_id is missing");
  const auto content = message.find("content");
  if (content != message.end() && !content->is_null())
    return check_content(*content, place + ".content", message["role"] == "assistant");
  if (message["role"] == "assistant") return {};
  return refuse_field(place + ".content", place + ".content must be a string or a list of parts");
}

}  // namespace

ApiResult<void> check_messages(const Json& messages) {
  if (!messages.is_array() || messages.empty())
    return refuse_field("messages", "messages must be a list of at least one message");
  for (size_t i = 0; i < messages.size(); ++i)
    OCTAVO_CHECK_OK(check_message(messages[i], fmt::format("messages[{}]", i)));
  return {};
}

ApiResult<std::string> read_prediction(const Json& prediction) {
  if (!prediction.is_object()) return refuse_field("prediction", "prediction must be an object");
  const auto type = prediction.find("type"), content = prediction.find("content");
  if (type == prediction.end() || *type != "content")
    return refuse_field("prediction.type", "prediction.type must be \"content\"");
  if (content == prediction.end())
    return refuse_field("prediction.content", "prediction.content is missing");
  OCTAVO_CHECK_OK(check_content(*content, "prediction.content"));
  if (content->is_string()) return content->get<std::string>();
  std::string text;
  for (const Json& part : *content) text += part["text"].get_ref<const std::string&>();
  return text;
}

}  // namespace octavo
