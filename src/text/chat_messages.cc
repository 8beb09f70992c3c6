// Messages from clients into the one shape a template expects.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "text/chat_template.h"

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

Result<Json> normalize_message(const Json& message, const std::string& place, bool as_parts) {
  if (!message.is_object()) return invalid(place + " must be an object");
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string() || role->get_ref<const std::string&>().empty())
    return invalid(place + " needs a 'role', a string such as \"user\"");
  Json result = message;
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
  for (size_t i = 0; i < messages.size(); ++i) {
    OCTAVO_TRY(Json message, normalize_message(messages[i], fmt::format("messages[{}]", i),
                                               chat_template.expects_content_parts()));
    result.push_back(std::move(message));
  }
  return result;
}

}  // namespace octavo
