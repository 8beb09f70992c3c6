#include "formats/json_section.h"

#include <algorithm>

#include "formats/shallow_json.h"

namespace octavo {
namespace {

constexpr int kMaxDepth = 32;

}  // namespace

Result<std::optional<int64_t>> JsonSection::find_layer_number(const char* field,
                                                              int64_t num_layers) const {
  const nlohmann::json* value = find(field);
  if (!value || !value->is_array()) return find_number(field);
  if (value->empty() || value->size() != static_cast<size_t>(num_layers))
    return error(field, fmt::format("is not a list of {} layers", num_layers));
  const nlohmann::json& first = value->front();
  if (std::ranges::any_of(*value, [&](const nlohmann::json& layer) { return layer != first; }))
    return error(field, "differs from layer to layer, which is not supported",
                 ErrorCode::unsupported);
  const nlohmann::json alone = {{field, first}};
  return JsonSection(alone, file_, prefix_).find_number(field);
}

tl::unexpected<Error> JsonSection::contradiction(std::string_view field,
                                                 std::string_view other) const {
  return error(field, fmt::format("and '{}' are one setting, but say different things; leave the "
                                  "wrong one out",
                                  other));
}

Result<const char*> JsonSection::one_of(const char* first, const char* second) const {
  const nlohmann::json *a = find(first), *b = find(second);
  if (a && b && *a != *b) return contradiction(first, prefix_ + second);
  return a ? first : b ? second : nullptr;
}

Result<std::optional<int64_t>> JsonSection::one_number(const char* first, const char* second,
                                                       int64_t least, int64_t limit) const {
  OCTAVO_TRY(const char* field, one_of(first, second));
  return find_number(field ? field : first, least, limit);
}

Result<nlohmann::json> parse_config_json(std::string_view text, const std::string& name,
                                         size_t max_bytes) {
  if (text.size() > max_bytes)
    return fail(ErrorCode::unsupported, fmt::format("{}: has {} bytes, above the limit of {}", name,
                                                    text.size(), max_bytes));
  auto [root, too_deep] = parse_shallow_json(text, kMaxDepth);
  if (too_deep)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: is nested deeper than {} levels", name, kMaxDepth));
  if (!root.is_object())
    return fail(ErrorCode::corrupt_file, fmt::format("{}: is not a JSON object", name));
  return std::move(root);
}

}  // namespace octavo
