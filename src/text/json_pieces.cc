#include "text/json_pieces.h"

#include <nlohmann/json.hpp>

namespace octavo {
namespace {

// What stands outside strings: numbers, true, false, null and what holds them together.
constexpr std::string_view kPlain = "0123456789+-.eE truefalsn,:\n\r\t";

}  // namespace

JsonEnd::State JsonEnd::push_in_string(char byte) {
  if (static_cast<unsigned char>(byte) < 0x20) return State::bad;
  if (escaped_)
    escaped_ = false;
  else if (byte == '\\')
    escaped_ = true;
  else if (byte == '"')
    in_string_ = false;
  return State::more;
}

JsonEnd::State JsonEnd::push(char byte) {
  if (in_string_) return push_in_string(byte);
  if (byte == '{' || byte == '[') {
    open_ += byte == '{' ? '}' : ']';
    return open_.size() > kMaxDepth ? State::bad : State::more;
  }
  if (byte == '}' || byte == ']') {
    if (open_.empty() || open_.back() != byte) return State::bad;
    open_.pop_back();
    return open_.empty() ? State::done : State::more;
  }
  in_string_ = byte == '"';
  return in_string_ || kPlain.find(byte) != std::string_view::npos ? State::more : State::bad;
}

bool is_json(std::string_view text) {
  if (text.empty() || (text[0] != '{' && text[0] != '[')) return false;
  JsonEnd end;
  size_t i = 0;
  auto state = JsonEnd::State::more;
  while (i < text.size() && state == JsonEnd::State::more) state = end.push(text[i++]);
  return state == JsonEnd::State::done && i == text.size() && nlohmann::json::accept(text);
}

std::vector<std::string_view> json_items(std::string_view text) {
  std::vector<std::string_view> items;
  size_t depth = 0, begin = 1;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (in_string && byte == '\\')
      ++i;
    else if (byte == '"')
      in_string = !in_string;
    else if (in_string)
      continue;
    else if (byte == '{' || byte == '[')
      ++depth;
    const bool ends = !in_string && (byte == '}' || byte == ']') && --depth == 0;
    if (!ends && (in_string || byte != ',' || depth != 1)) continue;
    const std::string_view item = trim_json_space(text.substr(begin, i - begin));
    if (!item.empty()) items.push_back(item);
    begin = i + 1;
  }
  return items;
}

std::vector<std::pair<std::string, std::string_view>> json_members(std::string_view text) {
  std::vector<std::pair<std::string, std::string_view>> members;
  for (const std::string_view item : json_items(text)) {
    size_t end = 1;  // of the key, which is a string
    while (item[end] != '"') end += item[end] == '\\' ? 2 : 1;
    const size_t colon = item.find(':', end);
    members.emplace_back(nlohmann::json::parse(item.substr(0, end + 1)).get<std::string>(),
                         trim_json_space(item.substr(colon + 1)));
  }
  return members;
}

nlohmann::ordered_json read_json(std::string_view text) {
  using Json = nlohmann::ordered_json;
  if (text.starts_with('[')) {
    Json list = Json::array();
    for (const std::string_view item : json_items(text)) list.push_back(read_json(item));
    return list;
  }
  if (!text.starts_with('{')) return Json::parse(text);
  Json object = Json::object();
  auto& members = object.get_ref<Json::object_t&>();
  for (auto& [key, value] : json_members(text))
    members.emplace_back(std::move(key), read_json(value));
  return object;
}

}  // namespace octavo
