#include "formats/shallow_json.h"

#include <algorithm>

namespace octavo {

ShallowJson parse_shallow_json(std::string_view text, int max_depth) {
  int deepest = 0;
  const auto within_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    deepest = std::max(deepest, depth);
    return depth <= max_depth;
  };
  nlohmann::json root = nlohmann::json::parse(text, within_depth, /*allow_exceptions=*/false);
  return {std::move(root), deepest > max_depth};
}

}  // namespace octavo
