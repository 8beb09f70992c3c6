#include "formats/json_section.h"

#include "formats/shallow_json.h"

namespace octavo {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;  // real ones have a few thousand
constexpr int kMaxDepth = 32;

}  // namespace

Result<nlohmann::json> parse_config_json(std::string_view text, const std::string& name) {
  if (text.size() > kMaxBytes)
    return fail(ErrorCode::unsupported, fmt::format("{}: has {} bytes, above the limit of {}", name,
                                                    text.size(), kMaxBytes));
  auto [root, too_deep] = parse_shallow_json(text, kMaxDepth);
  if (too_deep)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: is nested deeper than {} levels", name, kMaxDepth));
  if (!root.is_object())
    return fail(ErrorCode::corrupt_file, fmt::format("{}: is not a JSON object", name));
  return std::move(root);
}

}  // namespace octavo
