#include "text/chat_messages.h"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <utility>

#include "text/json_pieces.h"
#include "text/ordered_json.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

tl::unexpected<Error> invalid(std::string message) {
  return fail(ErrorCode::invalid_argument, std::move(message));
}

// More than any client sends: looking for one of them is a walk through all.
constexpr size_t kMaxFields = 64;

Result<void> check_fields(const Json& object, const std::string& place) {
  if (!object.is_object()) return invalid(place + " must be an object");
  if (object.size() <= kMaxFields) return {};
  return invalid(
      fmt::format("{} has {} fields; allowed: at most {}", place, object.size(), kMaxFields));
}

bool is_nothing(const Json& value) {
  return value.is_null() || (value.is_structured() && value.empty());
}

// A refusal is no text of the answer.
Result<std::string> part_text(const Json& part, const std::string& place) {
  OCTAVO_CHECK_OK(check_fields(part, place));
  const auto type = part.find("type");
  if (type == part.end() || !type->is_string()) return invalid(place + " needs a string 'type'");
  const std::string& kind = type->get_ref<const std::string&>();
  if (kind == "refusal") return std::string();
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

}  // namespace

Result<std::string> text_of_content(const Json& content, const std::string& place) {
  return joined_text(content, place);
}

namespace {

// Arguments of all calls of a conversation together: a bound on memory, which objects take many
// times the bytes of their text of.
constexpr size_t kMaxArgumentBytes = size_t{4} << 20;

Result<std::string> argument_text(const Json& arguments, const std::string& place) {
  if (arguments.is_object()) return arguments.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (!arguments.is_string()) return invalid(place + " must be a string of JSON");
  const auto text = trim_json_space(arguments.get_ref<const std::string&>());
  if (text.empty()) return std::string("{}");
  if (text.size() > kMaxArgumentBytes || (text.starts_with('{') && is_json(text)))
    return std::string(text);
  return invalid(
      fmt::format("{} is no JSON object of at most {} levels", place, JsonEnd::kMaxDepth));
}

Result<void> plain_calls(Json& calls, const std::string& place, size_t& num_bytes) {
  if (!calls.is_array()) return invalid(place + " must be a list");
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string at = fmt::format("{}[{}].function", place, i);
    Json& call = calls[i];
    if (!call.is_object() || !call.contains("function") || !call["function"].is_object())
      return invalid(at + " must be an object");
    Json& function = call["function"];
    if (!function.contains("name") || !function["name"].is_string())
      return invalid(at + ".name must be a string");
    OCTAVO_TRY(std::string arguments, argument_text(function["arguments"], at + ".arguments"));
    if ((num_bytes += arguments.size()) > kMaxArgumentBytes)
      return invalid(
          fmt::format("{}.arguments: the arguments of all calls have over {} bytes; leave out old "
                      "ones",
                      at, kMaxArgumentBytes));
    function["arguments"] = std::move(arguments);
  }
  return {};
}

// Names that clients and other servers have for one thing.
Result<void> join_reasoning(Json& message, const std::string& place) {
  constexpr const char* kName = "reasoning_content";
  const auto alias = message.find("reasoning");
  if (alias == message.end()) return {};
  Json value = std::move(*alias);
  message.erase(alias);
  if (is_nothing(value) || value == "") return {};
  const auto named = message.find(kName);
  const bool has_other = named != message.end() && !is_nothing(*named) && *named != "";
  if (has_other && *named != value)
    return invalid(
        fmt::format("{0}.reasoning and {0}.{1} mean the same and differ; give one", place, kName));
  message[kName] = std::move(value);
  return {};
}

void drop_nothings(Json& message) {
  for (auto field = message.begin(); field != message.end();)
    field =
        field.key() != "content" && is_nothing(*field) ? message.erase(field) : std::next(field);
}

Result<void> make_plain(Json& message, const std::string& place, size_t& argument_bytes) {
  OCTAVO_CHECK_OK(check_fields(message, place));
  const auto role = message.find("role");
  if (role == message.end() || !role->is_string() || role->get_ref<const std::string&>().empty())
    return invalid(place + " needs a 'role', a string such as \"user\"");
  const bool is_assistant = *role == "assistant";
  drop_nothings(message);
  OCTAVO_CHECK_OK(join_reasoning(message, place));
  if (const auto calls = message.find("tool_calls"); calls != message.end())
    OCTAVO_CHECK_OK(plain_calls(*calls, place + ".tool_calls", argument_bytes));
  Json& content = message["content"];
  if (content.is_null())
    return is_assistant ? Result<void>() : invalid(place + " needs a 'content'");
  OCTAVO_TRY(content, joined_text(content, place + ".content"));
  return {};
}

void shape_calls(Json& calls, const ChatTraits& traits) {
  if (traits.wants_argument_text) return;
  for (Json& call : calls) {
    Json& arguments = call["function"]["arguments"];
    arguments = parse_ordered_json(arguments.get_ref<const std::string&>());
  }
}

void shape_reasoning(Json& message, const ChatTraits& traits) {
  const auto reasoning = message.find("reasoning_content");
  if (reasoning == message.end() || traits.reasoning_field.empty()) return;
  Json value = std::move(*reasoning);
  message.erase(reasoning);
  message[traits.reasoning_field] = std::move(value);
}

void shape_content(Json& message, const ChatTraits& traits) {
  Json& content = message["content"];
  if (content.is_null()) {
    // That a message says nothing is known by its calls; without them templates fail over it.
    if (message.contains("tool_calls") && traits.wants_null_content) return;
    content = "";
  }
  if (traits.wants_parts) content = Json::array({{{"type", "text"}, {"text", std::move(content)}}});
}

}  // namespace

Result<Json> plain_messages(Json messages) {
  if (!messages.is_array() || messages.empty())
    return invalid("messages must be a list of at least one message");
  size_t argument_bytes = 0;
  for (size_t i = 0; i < messages.size(); ++i)
    OCTAVO_CHECK_OK(make_plain(messages[i], fmt::format("messages[{}]", i), argument_bytes));
  return messages;
}

Json shape_messages(Json plain, const ChatTraits& traits) {
  for (Json& message : plain) {
    if (message["role"] == "developer" && !traits.names_developer) message["role"] = "system";
    if (const auto calls = message.find("tool_calls"); calls != message.end())
      shape_calls(*calls, traits);
    shape_reasoning(message, traits);
    shape_content(message, traits);
  }
  return plain;
}

}  // namespace octavo
