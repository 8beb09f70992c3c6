// Parses JSON that may be nested on purpose to exhaust memory or the stack.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace octavo {

struct ShallowJson {
  nlohmann::json root;    // discarded if the text is not JSON
  bool too_deep = false;  // nested deeper than allowed; root is then of no use
};

// What is nested too deep is dropped while parsing, so that it takes no memory.
ShallowJson parse_shallow_json(std::string_view text, int max_depth);

}  // namespace octavo
