#include "cli/token_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "formats/shallow_json.h"

namespace octavo::cli {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 8;

tl::unexpected<Error> refuse(std::string_view name, std::string_view why) {
  return fail(ErrorCode::invalid_argument, fmt::format("{} {}", name, why));
}

Result<json> parse(std::string_view text, std::string_view name) {
  auto [root, too_deep] = parse_shallow_json(text, kMaxDepth);
  if (too_deep) return refuse(name, fmt::format("is nested deeper than {} levels", kMaxDepth));
  if (root.is_discarded()) return refuse(name, "is not JSON");
  return std::move(root);
}

}  // namespace

Result<std::vector<TokenId>> read_token_ids(const json& array, std::string_view name) {
  if (!array.is_array()) return refuse(name, "is not an array of token ids, such as [1, 2, 3]");
  std::vector<TokenId> ids;
  ids.reserve(array.size());
  for (const json& item : array) {
    // Of an unsigned number above int64 this makes a negative one, which is refused as well.
    const int64_t id = item.is_number_integer() ? item.get<int64_t>() : -1;
    if (id < 0 || id > std::numeric_limits<int32_t>::max())
      return refuse(
          name, fmt::format("has at place {} something that is no token id (an integer, 0 or more)",
                            ids.size()));
    ids.push_back(TokenId{static_cast<int32_t>(id)});
  }
  return ids;
}

Result<std::vector<TokenId>> parse_token_ids(std::string_view text, std::string_view name) {
  OCTAVO_TRY(const json root, parse(text, name));
  return read_token_ids(root, name);
}

Result<std::vector<std::vector<TokenId>>> parse_windows(std::string_view text,
                                                        std::string_view name) {
  OCTAVO_TRY(const json root, parse(text, name));
  const auto field = root.is_object() ? root.find("windows") : root.end();
  if (field == root.end() || !field->is_array() || field->empty())
    return refuse(name, "has no field 'windows' with a list of arrays of token ids");
  std::vector<std::vector<TokenId>> windows;
  for (const json& window : *field) {
    OCTAVO_TRY(std::vector<TokenId> ids,
               read_token_ids(window, fmt::format("{}: window {}", name, windows.size())));
    windows.push_back(std::move(ids));
  }
  return windows;
}

}  // namespace octavo::cli
