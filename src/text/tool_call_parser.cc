#include "text/tool_call_parser.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace octavo {
namespace {

constexpr size_t kMaxHeaderBytes = 512;  // a name and an id
constexpr std::string_view kCallId = "[CALL_ID]", kArgs = "[ARGS]";

std::string_view opener(ToolSyntax syntax) {
  switch (syntax) {
    case ToolSyntax::hermes:
      return "<tool_call>";
    case ToolSyntax::llama_json:
      return "<|python_tag|>";
    case ToolSyntax::mistral:
      return "[TOOL_CALLS]";
  }
  return "";
}

bool is_name_byte(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte == '.';
}

// An object, or the text of one, as OpenAI's API has it. Empty: neither.
std::string arguments_of(std::string_view json) {
  if (json.starts_with('{')) return std::string(json);
  if (!json.starts_with('"')) return "";
  const auto text = nlohmann::json::parse(json).get<std::string>();
  const std::string_view inner = trim_json_space(text);
  return inner.starts_with('{') && is_json(inner) ? std::string(inner) : "";
}

// {"name": ..., "arguments": {...}}; Llama says parameters.
std::optional<ToolCall> call_of(std::string_view json, bool needs_arguments) {
  ToolCall call;
  if (!json.starts_with('{')) return std::nullopt;
  for (const auto& [key, value] : json_members(json)) {
    if (key == "name") {
      if (!call.name.empty() || !value.starts_with('"')) return std::nullopt;
      call.name = nlohmann::json::parse(value).get<std::string>();
      if (call.name.empty()) return std::nullopt;
    } else if (key == "arguments" || key == "parameters") {
      if (!call.arguments.empty()) return std::nullopt;
      call.arguments = arguments_of(value);
      if (call.arguments.empty()) return std::nullopt;
    }
  }
  if (call.name.empty() || (call.arguments.empty() && needs_arguments)) return std::nullopt;
  if (call.arguments.empty()) call.arguments = "{}";
  return call;
}

// All or nothing.
std::vector<ToolCall> calls_of(std::string_view json, bool needs_arguments) {
  if (!is_json(json)) return {};
  const bool is_list = json.starts_with('[');
  std::vector<ToolCall> calls;
  for (const std::string_view item : is_list ? json_items(json) : std::vector{json}) {
    auto call = call_of(item, needs_arguments);
    if (!call) return {};
    calls.push_back(std::move(*call));
  }
  return calls;
}

// The name in "name", "name[ARGS]" and "name[CALL_ID]id[ARGS]"; empty: it is none of them.
std::string_view name_of(std::string_view header) {
  header = trim_json_space(header);
  const auto name_end = std::find_if_not(header.begin(), header.end(), is_name_byte);
  const auto size = static_cast<size_t>(name_end - header.begin());
  const std::string_view rest = trim_json_space(header.substr(size));
  const bool fits =
      rest.empty() || rest == kArgs || (rest.starts_with(kCallId) && rest.ends_with(kArgs));
  return fits ? header.substr(0, size) : std::string_view();
}

}  // namespace

ToolCallParser::ToolCallParser(ToolSyntax syntax)
    : syntax_(syntax), open_(opener(syntax)), close_("</tool_call>") {}

void ToolCallParser::push(std::string_view text, std::string& content,
                          std::vector<ToolCall>& calls) {
  for (const char byte : text) push(byte, content, calls);
}

void ToolCallParser::push(char byte, std::string& content, std::vector<ToolCall>& calls) {
  switch (state_) {
    case State::text:
      return push_text(byte, content);
    case State::gap:
      return push_gap(byte, content);
    case State::header:
      return push_header(byte, content);
    case State::json:
      return push_json(byte, content, calls);
    case State::tail:
      return push_tail(byte, content);
  }
}

void ToolCallParser::push_text(char byte, std::string& content) {
  const bool is_bare =
      syntax_ == ToolSyntax::llama_json && may_begin_ && byte == '{' && open_.holds_nothing();
  std::string passed;
  const bool is_open = !is_bare && open_.push(byte, passed);
  show(passed, content);
  if (!is_bare && !is_open) return;
  raw_ = std::exchange(spaces_, {});
  if (is_open) raw_ += opener(syntax_);
  call_begin_ = raw_.size();
  state_ = State::gap;
  if (is_bare) push_gap(byte, content);
}

// Text that is no call; white space at its end waits for what comes.
void ToolCallParser::show(std::string_view text, std::string& content) {
  for (const char byte : text) {
    const bool separates = byte == ';' && after_call_ && syntax_ == ToolSyntax::llama_json;
    if (is_json_space(byte) || separates) {
      spaces_ += byte;
      continue;
    }
    content.append(std::exchange(spaces_, {})) += byte;
    may_begin_ = after_call_ = false;
  }
}

void ToolCallParser::push_gap(char byte, std::string& content) {
  raw_ += byte;
  if (is_json_space(byte)) return;
  const bool is_mistral = syntax_ == ToolSyntax::mistral;
  if (byte == '{' || (byte == '[' && is_mistral)) return begin_json();
  if (!is_mistral || !is_name_byte(byte)) return refuse(byte, content);
  state_ = State::header;
}

void ToolCallParser::begin_json() {
  state_ = State::json;
  json_begin_ = raw_.size() - 1;
  json_ = {};
  json_.push(raw_.back());
}

void ToolCallParser::push_header(char byte, std::string& content) {
  raw_ += byte;
  if (raw_.size() - call_begin_ > kMaxHeaderBytes) return refuse(byte, content);
  if (byte != '{') return;
  const std::string_view header = std::string_view(raw_).substr(call_begin_);
  if (name_of(header.substr(0, header.size() - 1)).empty()) return refuse(byte, content);
  begin_json();
}

void ToolCallParser::push_json(char byte, std::string& content, std::vector<ToolCall>& calls) {
  raw_ += byte;
  const JsonEnd::State state = json_.push(byte);
  if (state == JsonEnd::State::bad) return refuse(byte, content);
  if (state == JsonEnd::State::more) return;
  const std::string_view json = std::string_view(raw_).substr(json_begin_);
  const std::string_view header =
      std::string_view(raw_).substr(call_begin_, json_begin_ - call_begin_);
  if (const std::string_view name = name_of(header); !name.empty()) {
    if (!is_json(json)) return take({}, content, calls);
    return take({{std::string(name), std::string(json)}}, content, calls);
  }
  take(calls_of(json, syntax_ == ToolSyntax::llama_json), content, calls);
}

// A call ends with this byte; without one, what looked like it is content.
void ToolCallParser::take(std::vector<ToolCall> found, std::string& content,
                          std::vector<ToolCall>& calls) {
  const std::string raw = std::exchange(raw_, {});
  state_ = State::text;
  if (found.empty()) return show(raw, content);
  std::move(found.begin(), found.end(), std::back_inserter(calls));
  after_call_ = may_begin_ = true;
  if (syntax_ == ToolSyntax::hermes) state_ = State::tail;
}

// What came so far is content; what this byte begins is open.
void ToolCallParser::refuse(char byte, std::string& content) {
  std::string raw = std::exchange(raw_, {});
  raw.pop_back();
  state_ = State::text;
  may_begin_ = false;
  show(raw, content);
  push_text(byte, content);
}

void ToolCallParser::push_tail(char byte, std::string& content) {
  std::string passed;
  const bool closed = close_.push(byte, passed);
  if (closed) {
    spaces_.clear();
    state_ = State::text;
  }
  const bool is_space = std::all_of(passed.begin(), passed.end(), is_json_space);
  if (is_space) {
    spaces_ += passed;
    return;
  }
  // The close is missing. What is held may begin another call.
  passed += close_.take();
  state_ = State::text;
  for (const char other : passed) push_text(other, content);
}

void ToolCallParser::finish(std::string& content) {
  if (state_ == State::tail) return;  // a close that was cut off is no content
  show(state_ == State::text ? open_.take() : std::exchange(raw_, {}), content);
  state_ = State::text;
  if (!after_call_) content += std::exchange(spaces_, {});
}

}  // namespace octavo
