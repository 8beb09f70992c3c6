// Parses JSON that may be nested on purpose to exhaust memory or the stack.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

struct ShallowJson {
  nlohmann::json root;    // discarded if the text is not JSON
  bool too_deep = false;  // nested deeper than allowed; root is then of no use
};

// What is nested too deep is dropped while parsing, so that it takes no memory.
ShallowJson parse_shallow_json(std::string_view text, int max_depth);

struct StrictJson : ShallowJson {
  // A key that an object has twice; root has the last of its values. Which one counts is not agreed
  // on between programs, so that readers of requests refuse it.
  std::optional<std::string> repeated_key = {};
};
StrictJson parse_strict_json(std::string_view text, int max_depth);

}  // namespace octavo
