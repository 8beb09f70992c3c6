#include "text/chat_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;
using Checked = tl::expected<void, ToolsFault>;

constexpr size_t kMaxNameBytes = 64;  // OpenAI's

tl::unexpected<ToolsFault> refuse(const std::string& place, const std::string& why) {
  return tl::unexpected<ToolsFault>({place, place + " " + why});
}

bool is_name(const Json& value) {
  if (!value.is_string()) return false;
  const auto& name = value.get_ref<const std::string&>();
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

Checked check_function(const Json& function, const std::string& place) {
  if (!function.is_object()) return refuse(place, "must be an object");
  const auto name = function.find("name");
  if (name == function.end() || !is_name(*name))
    return refuse(place + ".name",
                  fmt::format("must be a string of 1 to {} letters, digits, '_', '-' and '.'",
                              kMaxNameBytes));
  const auto is_fine = [&](const char* member, bool (Json::*is_type)() const noexcept) {
    const auto found = function.find(member);
    return found == function.end() || found->is_null() || ((*found).*is_type)();
  };
  if (!is_fine("description", &Json::is_string))
    return refuse(place + ".description", "must be a string");
  if (!is_fine("parameters", &Json::is_object))
    return refuse(place + ".parameters", "must be an object, a JSON Schema");
  if (!is_fine("strict", &Json::is_boolean)) return refuse(place + ".strict", "must be a boolean");
  return {};
}

}  // namespace

Checked check_tools(const Json& tools) {
  if (!tools.is_array()) return refuse("tools", "must be a list");
  std::set<std::string> names;
  for (size_t i = 0; i < tools.size(); ++i) {
    const std::string place = fmt::format("tools[{}]", i);
    if (!tools[i].is_object()) return refuse(place, "must be an object");
    const auto type = tools[i].find("type");
    if (type == tools[i].end() || *type != "function")
      return refuse(place + ".type", "must be \"function\"; no other tools are served");
    const auto function = tools[i].find("function");
    if (function == tools[i].end()) return refuse(place + ".function", "is missing");
    if (auto checked = check_function(*function, place + ".function"); !checked) return checked;
    if (!names.insert((*function)["name"].get<std::string>()).second)
      return refuse(place + ".function.name", "is there twice");
  }
  return {};
}

}  // namespace octavo
