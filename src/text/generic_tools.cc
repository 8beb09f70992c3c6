#include "text/generic_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "text/json_pieces.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr ToolFormat kGeneric = {"generic", ToolSyntax::hermes};

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string tools_text(const Json& tools) {
  std::string text =
      "You may call functions. Each line between <tools> and </tools> describes one:\n<tools>\n";
  for (const Json& tool : tools) text.append(to_text(tool)) += '\n';
  text +=
      "</tools>\n\nTo call a function, write one JSON object with its name and its arguments "
      "between <tool_call> and </tool_call>:\n<tool_call>\n"
      "{\"name\": \"the function's name\", \"arguments\": {\"an argument's name\": \"its value\"}}"
      "\n</tool_call>\nSeveral calls follow one another. Their results are given to you between "
      "<tool_response> and </tool_response>. If no function helps, answer without one.";
  return text;
}

bool says_something(const Json& message) {
  return message["content"].is_string() &&
         !message["content"].get_ref<const std::string&>().empty();
}

void put_before(Json& message, const std::string& text) {
  const std::string rest =
      says_something(message) ? "\n\n" + message["content"].get<std::string>() : "";
  message["content"] = text + rest;
}

// In place: thousands of results may follow one another.
void put_after(Json& message, std::string_view text, std::string_view between) {
  if (says_something(message))
    message["content"].get_ref<std::string&>().append(between).append(text);
  else
    message["content"] = std::string(text);
}

bool is_system(const Json& message) {
  return message["role"] == "system" || message["role"] == "developer";
}

void insert_first(Json& messages, Json message) {
  messages.insert(messages.begin(), std::move(message));
}

void put_before_the_users(Json& messages, const std::string& text) {
  for (Json& message : messages)
    if (message["role"] == "user") return put_before(message, text);
  insert_first(messages, {{"role", "user"}, {"content", text}});
}

std::string_view text_of(const Json& value) { return value.get_ref<const std::string&>(); }

std::string text_or_nothing(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// {"name": ..., "arguments": {...}}, the arguments as they were written.
std::string call_json(const Json& call, std::string_view arguments_name) {
  const Json& function = call["function"];
  return fmt::format("{{\"name\": {}, \"{}\": {}}}", to_text(function["name"]), arguments_name,
                     text_of(function["arguments"]));
}

std::string joined(const Json& calls, std::string_view arguments_name, std::string_view open,
                   std::string_view between, std::string_view close) {
  std::string text;
  for (const Json& call : calls) {
    if (!text.empty()) text += between;
    text.append(open).append(call_json(call, arguments_name)).append(close);
  }
  return text;
}

std::string calls_text(const Json& calls, ToolSyntax syntax) {
  switch (syntax) {
    case ToolSyntax::hermes:
      return joined(calls, "arguments", "<tool_call>\n", "\n", "\n</tool_call>");
    case ToolSyntax::llama_json:
      return joined(calls, "parameters", "", "; ", "");
    case ToolSyntax::mistral:
      return "[TOOL_CALLS][" + joined(calls, "arguments", "", ", ", "") + "]";
  }
  return "";
}

std::string result_text(const std::string& name, std::string_view content) {
  const std::string value =
      is_json(trim_json_space(content)) ? std::string(content) : to_text(Json(content));
  const std::string named = name.empty() ? "" : fmt::format("\"name\": {}, ", to_text(name));
  return fmt::format("<tool_response>\n{{{}\"content\": {}}}\n</tool_response>", named, value);
}

class Writer {
 public:
  Writer(WrittenOut parts, const ToolFormat& format) : parts_(parts), format_(format) {}

  void add(Json message) {
    note_names(message);
    if (message["role"] == "tool" && parts_.results) return add_result(message);
    if (message.contains("tool_calls") && parts_.calls) {
      put_after(message, calls_text(message["tool_calls"], format_.syntax), "\n");
      message.erase("tool_calls");
    }
    if (after_result_ && message["role"] == "user")
      put_after(out_.back(), text_of(message["content"]), "\n\n");
    else
      out_.push_back(std::move(message));
    after_result_ = false;
  }
  Json take() { return std::move(out_); }

 private:
  void note_names(const Json& message) {
    if (!message.contains("tool_calls")) return;
    for (const Json& call : message["tool_calls"])
      names_[text_or_nothing(call, "id")] = text_or_nothing(call["function"], "name");
  }

  void add_result(const Json& message) {
    const auto found = names_.find(text_or_nothing(message, "tool_call_id"));
    const std::string name =
        found != names_.end() ? found->second : text_or_nothing(message, "name");
    const std::string text = result_text(name, text_of(message["content"]));
    if (std::exchange(after_result_, true))
      put_after(out_.back(), text, "\n");
    else
      out_.push_back({{"role", "user"}, {"content", text}});
  }

  WrittenOut parts_;
  const ToolFormat& format_;
  std::map<std::string, std::string> names_;  // of calls, by their ids
  Json out_ = Json::array();
  bool after_result_ = false;
};

}  // namespace

const ToolFormat& generic_tool_format() { return kGeneric; }

void add_tools(Json& messages, const Json& tools, bool in_system) {
  const std::string text = tools_text(tools);
  if (!in_system) return put_before_the_users(messages, text);
  if (is_system(messages.front())) return put_after(messages.front(), text, "\n\n");
  insert_first(messages, {{"role", "system"}, {"content", text}});
}

void show_as_users(Json& messages, const std::vector<size_t>& places) {
  const auto is_users = [](const Json& message) { return message["role"] == "user"; };
  if (std::none_of(messages.begin(), messages.end(), is_users)) return;
  Json shown = Json::array();
  size_t behind_last = 0;  // of the user's, in `shown`
  std::string waiting;     // for the user's next message
  for (size_t i = 0; i < messages.size(); ++i) {
    Json& message = messages[i];
    if (std::ranges::binary_search(places, i)) {
      waiting.append(waiting.empty() ? "" : "\n\n").append(text_of(message["content"]));
      continue;
    }
    if (is_users(message)) {
      if (!waiting.empty()) put_before(message, std::exchange(waiting, {}));
      behind_last = shown.size() + 1;
    }
    shown.push_back(std::move(message));
  }
  if (!waiting.empty()) put_after(shown[behind_last - 1], waiting, "\n\n");
  messages = std::move(shown);
}

Json write_out(const Json& messages, WrittenOut parts, const ToolFormat& format) {
  Writer writer(parts, format);
  for (const Json& message : messages) writer.add(message);
  return writer.take();
}

}  // namespace octavo
