#include "text/chat_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "text/json_pieces.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;
using Pointer = Json::json_pointer;

// Fields that are tried one by one, at most. Published templates leave out fields of one kind.
constexpr size_t kMaxTried = 16;
constexpr size_t kMaxPlaces = 3;  // that a warning names, in so many bytes each
constexpr size_t kMaxPlaceBytes = 120;
constexpr size_t kMaxWarnings = 16;  // names are the client's; what is left shares one

struct Field {
  size_t message;
  Pointer at;
  std::string name;                   // "content", "tool_calls.id": of what kind it is
  std::optional<Pointer> alias = {};  // another place of the same text
  bool shows = false;
};

bool says_something(const Json& value) {
  if (value.is_null()) return false;
  if (value.is_structured() || value.is_string())
    return value.is_string() ? !value.get_ref<const std::string&>().empty() : !value.empty();
  return true;
}

bool says_something_under(const char* name, const Json& message) {
  const auto found = message.find(name);
  return found != message.end() && says_something(*found);
}

// Ids of calls that have a result.
std::set<std::string> paired_ids(const Json& messages) {
  std::set<std::string> called, paired;
  for (const Json& message : messages) {
    const auto calls = message.find("tool_calls");
    if (calls != message.end() && calls->is_array())
      for (const Json& call : *calls)
        if (call.contains("id") && call["id"].is_string()) called.insert(call["id"]);
    const auto id = message.find("tool_call_id");
    if (id == message.end() || !id->is_string()) continue;
    if (const auto name = id->get<std::string>(); called.contains(name)) paired.insert(name);
  }
  return paired;
}

class Fields {
 public:
  explicit Fields(const Json& messages) : paired_(paired_ids(messages)) {
    for (size_t i = 0; i < messages.size(); ++i) {
      message_ = i;
      add_message(messages[i], Pointer() / i);
    }
  }
  std::vector<Field> take() { return std::move(fields_); }

 private:
  void add(const Json& value, Pointer at, std::string name) {
    if (says_something(value)) fields_.push_back({message_, std::move(at), std::move(name)});
  }

  void add_id(const Json& value, Pointer at, std::string name) {
    const bool is_paired = value.is_string() && paired_.contains(value.get<std::string>());
    if (!is_paired) add(value, std::move(at), std::move(name));
  }

  void add_message(const Json& message, const Pointer& at) {
    const bool has_alias = says_something_under("reasoning_content", message) &&
                           says_something_under("reasoning", message);
    for (const auto& [name, value] : message.items()) {
      if (name == "role" || (has_alias && name == "reasoning")) continue;
      if (name == "content" && value.is_array())
        add_parts(value, at / name);
      else if (name == "tool_calls" && value.is_array())
        add_calls(value, at / name);
      else if (name == "tool_call_id")
        add_id(value, at / name, name);
      else
        add(value, at / name, name);
      if (has_alias && name == "reasoning_content") fields_.back().alias = at / "reasoning";
    }
  }

  void add_parts(const Json& parts, const Pointer& at) {
    for (size_t i = 0; i < parts.size(); ++i)
      for (const auto& [name, value] : parts[i].items())
        if (name != "type") add(value, at / i / name, name == "text" ? "content" : name);
  }

  void add_calls(const Json& calls, const Pointer& at) {
    for (size_t i = 0; i < calls.size(); ++i) {
      const Json& function = calls[i]["function"];
      if (calls[i].contains("id")) add_id(calls[i]["id"], at / i / "id", "tool_calls.id");
      add(function["name"], at / i / "function" / "name", "tool_calls.function.name");
      if (function.contains("arguments"))
        add(function["arguments"], at / i / "function" / "arguments",
            "tool_calls.function.arguments");
    }
  }

  std::set<std::string> paired_;
  std::vector<Field> fields_;
  size_t message_ = 0;
};

// Letters and digits alone: templates change the case, and trim. No other text has it.
std::string marker_of(size_t field) { return fmt::format("zq{}oqz", field); }

// Text gets the marker at its end, arguments a member of that name. What is no text becomes it.
void change(Json& value, const std::string& marker, bool are_arguments) {
  if (are_arguments && value.is_string()) {
    const auto text = trim_json_space(value.get_ref<const std::string&>());
    const auto rest = trim_json_space(text.substr(std::min<size_t>(text.size(), 1)));
    const bool is_empty = rest.empty() || rest == "}";
    value = fmt::format("{{\"{}\": 1{}{}", marker, is_empty ? "" : ", ", is_empty ? "}" : rest);
  } else if (are_arguments && value.is_object()) {
    value[marker] = 1;
  } else if (value.is_string()) {
    value = value.get<std::string>() + marker;
  } else {
    value = marker;
  }
}

class Trace {
 public:
  Trace(const Json& messages, const std::string& prompt, const PromptOf& prompt_of)
      : messages_(messages),
        prompt_(prompt),
        prompt_of_(prompt_of),
        fields_(Fields(messages).take()) {}

  std::vector<Field> without_effect() {
    mark_what_shows();
    std::vector<Field> hidden;
    for (const Field& field : fields_)
      if (!field.shows) hidden.push_back(field);
    if (hidden.empty() || is_same_without(hidden)) return hidden;
    std::vector<Field> found;
    for (size_t i = 0; i < std::min(hidden.size(), kMaxTried); ++i)
      if (is_same_without({hidden[i]})) found.push_back(hidden[i]);
    return found;
  }

 private:
  using Choice = bool (*)(const Field&);
  static bool any(const Field&) { return true; }
  // What no template refuses for its form, as some do ids of another length.
  static bool is_content(const Field& field) { return field.name == "content"; }

  std::optional<std::string> with_changes(const std::vector<Field>& fields,
                                          Choice choice = any) const {
    Json changed = messages_;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (!choice(fields[i])) continue;
      const bool are_arguments = fields[i].name == "tool_calls.function.arguments";
      change(changed[fields[i].at], marker_of(i), are_arguments);
      if (fields[i].alias) change(changed[*fields[i].alias], marker_of(i), are_arguments);
    }
    return prompt_of_(std::move(changed));
  }

  void mark_what_shows() {
    auto text = with_changes(fields_);
    if (!text) text = with_changes(fields_, is_content);
    if (!text) return;
    std::transform(text->begin(), text->end(), text->begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (size_t at = text->find("zq"); at != std::string::npos; at = text->find("zq", at + 1)) {
      size_t end = at + 2, number = 0;
      while (end < text->size() && end < at + 12 &&
             std::isdigit(static_cast<unsigned char>((*text)[end])))
        number = 10 * number + static_cast<size_t>((*text)[end++] - '0');
      if (number < fields_.size() &&
          text->compare(at, marker_of(number).size(), marker_of(number)) == 0)
        fields_[number].shows = true;
    }
  }

  bool is_same_without(const std::vector<Field>& fields) const {
    return with_changes(fields) == prompt_;
  }

  const Json& messages_;
  const std::string& prompt_;
  const PromptOf& prompt_of_;
  std::vector<Field> fields_;
};

std::string place_of(const Field& field) {
  std::string place = fmt::format("messages[{}]", field.message);
  Pointer rest = field.at;
  std::vector<std::string> parts;
  for (; !rest.empty(); rest.pop_back()) parts.push_back(rest.back());
  for (size_t i = parts.size() - 1; i-- > 0;) {
    const bool is_index =
        std::all_of(parts[i].begin(), parts[i].end(), [](char c) { return c >= '0' && c <= '9'; });
    place += is_index ? fmt::format("[{}]", parts[i]) : "." + parts[i];
  }
  return place;
}

std::vector<size_t> lost_messages(const Json& messages, const std::vector<Field>& lost) {
  std::map<size_t, size_t> counts;
  for (const Field& field : lost) ++counts[field.message];
  for (const Field& field : Fields(messages).take())
    if (const auto found = counts.find(field.message); found != counts.end()) --found->second;
  std::set<size_t> whole;
  for (const Field& field : lost)
    if (field.name == "content" && counts[field.message] == 0) whole.insert(field.message);
  return {whole.begin(), whole.end()};
}

}  // namespace

ChatTrace trace_of(const Json& messages, const std::string& prompt, const PromptOf& prompt_of) {
  const std::vector<Field> lost = Trace(messages, prompt, prompt_of).without_effect();
  std::map<std::string, std::vector<std::string>> places;
  for (const Field& field : lost) {
    const bool is_new = places.find(field.name) == places.end();
    const bool fits = !is_new || places.size() < kMaxWarnings;
    places[fits ? field.name : std::string()].push_back(place_of(field));
  }
  ChatTrace trace{.lost_messages = lost_messages(messages, lost)};
  for (const auto& [name, of_name] : places)
    trace.warnings.push_back(no_effect(of_name, "the model's chat template does not show it"));
  return trace;
}

std::string no_effect(const std::vector<std::string>& places, std::string_view why) {
  std::string text;
  for (size_t i = 0; i < std::min(places.size(), kMaxPlaces); ++i)
    text += (i > 0 ? ", " : "") + places[i].substr(0, kMaxPlaceBytes);
  if (places.size() > kMaxPlaces) text += fmt::format(" and {} more", places.size() - kMaxPlaces);
  return fmt::format("{} {} no effect: {}", text, places.size() > 1 ? "have" : "has", why);
}

}  // namespace octavo
