// JSON inside other text, as models write it: where a value ends, byte by byte, and what it is made
// of, as it was written.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo {

// Finds the end of an object or a list in a stream of bytes. What it calls done may still be no
// JSON (is_json() tells); what it calls bad never is.
class JsonEnd {
 public:
  enum class State { more, done, bad };
  static constexpr size_t kMaxDepth = 48;

  // The first byte is '{' or '['. REQUIRES: the state so far is `more`.
  State push(char byte);

 private:
  State push_in_string(char byte);

  std::string open_;  // brackets that wait for their end
  bool in_string_ = false, escaped_ = false;
};

// Whether the whole text is one object or list, no deeper than JsonEnd::kMaxDepth, of numbers that
// a double holds. No space around it.
bool is_json(std::string_view text);

// The items of a list. REQUIRES: is_json(text), and it is a list.
std::vector<std::string_view> json_items(std::string_view text);
// The members of an object, keys decoded. REQUIRES: is_json(text), and it is an object.
std::vector<std::pair<std::string, std::string_view>> json_members(std::string_view text);

// Of JSON, which has fewer than C has.
constexpr bool is_json_space(char byte) {
  return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

constexpr std::string_view trim_json_space(std::string_view text) {
  while (!text.empty() && is_json_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace octavo
