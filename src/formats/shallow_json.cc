#include "formats/shallow_json.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace octavo {
namespace {

// The keys of the objects that are open, outermost first.
class Keys {
 public:
  // False: the innermost object has it already.
  bool add(int depth, const std::string& key) {
    open_.resize(static_cast<size_t>(depth));
    return open_.back().insert(key).second;
  }
  // An object begins inside `depth` others.
  void begin(int depth) {
    open_.resize(static_cast<size_t>(depth));
    open_.emplace_back();
  }

 private:
  std::vector<std::set<std::string>> open_;
};

}  // namespace

ShallowJson parse_shallow_json(std::string_view text, int max_depth) {
  return parse_strict_json(text, max_depth);
}

StrictJson parse_strict_json(std::string_view text, int max_depth) {
  using Event = nlohmann::json::parse_event_t;
  // The parser takes U+0000 for the end of the text, whatever follows.
  if (text.find('\0') != std::string_view::npos)
    return {{nlohmann::json(nlohmann::json::value_t::discarded), false}, std::nullopt};
  int deepest = 0;
  std::optional<std::string> repeated;
  Keys keys;
  const auto look = [&](int depth, Event event, nlohmann::json& value) {
    deepest = std::max(deepest, depth);
    if (depth > max_depth) return false;
    if (event == Event::object_start) keys.begin(depth);
    if (event == Event::key && !keys.add(depth, value.get_ref<const std::string&>()) && !repeated)
      repeated = value.get<std::string>();
    return true;
  };
  nlohmann::json root = nlohmann::json::parse(text, look, /*allow_exceptions=*/false);
  return {{std::move(root), deepest > max_depth}, std::move(repeated)};
}

}  // namespace octavo
