#include "engine/exit_plan.h"

#include <fmt/format.h>

#include "base/private_folder.h"
#include "formats/shallow_json.h"
#include "model/pack_file.h"

namespace octavo {
namespace {

constexpr int kMaxDepth = 4;  // of a list in a step of the search
constexpr int kMaxLayer = 1 << 20;
constexpr size_t kMaxBytes = 1 << 20;

std::optional<std::string> file_name(const ModelSource& model) {
  const auto key = pack_key(model);
  if (!key) return std::nullopt;
  return fmt::format("exit-{:016x}{:016x}.json", key->high, key->low);
}

tl::unexpected<Error> damaged(std::string_view why) {
  return fail(ErrorCode::corrupt_file,
              fmt::format("the result of `octavo tune early-exit` {}; run it again", why));
}

}  // namespace

Result<EarlyExitOptions> parse_exit_plan(std::string_view text) {
  const StrictJson parsed = parse_strict_json(text, kMaxDepth);
  if (text.size() > kMaxBytes || parsed.too_deep || !parsed.root.is_object())
    return damaged("is no JSON object");
  const auto layers = parsed.root.find("skip_layers");
  const auto threshold = parsed.root.find("draft_confidence_threshold");
  if (layers == parsed.root.end() || !layers->is_array()) return damaged("has no skip_layers");
  EarlyExitOptions plan;
  for (const auto& layer : *layers) {
    if (!layer.is_number_integer() || layer.get<double>() < 0 || layer.get<double>() > kMaxLayer)
      return damaged("has a skipped layer that is none");
    plan.skipped_layers.push_back(layer.get<int>());
  }
  if (threshold == parsed.root.end()) return plan;
  if (!threshold->is_number()) return damaged("has a draft_confidence_threshold that is no number");
  plan.confidence_threshold = threshold->get<double>();
  return plan;
}

Result<std::optional<EarlyExitOptions>> find_exit_plan(const std::string& folder,
                                                       const ModelSource& model) {
  const auto name = file_name(model);
  if (folder.empty() || !name) return std::nullopt;
  OCTAVO_TRY(const PrivateFolder opened, PrivateFolder::open(folder));
  const auto file = opened.map(*name);
  if (!file && file.error().code == ErrorCode::not_found) return std::nullopt;
  if (!file) return tl::make_unexpected(file.error());
  const std::span<const std::byte> bytes = file->bytes();
  return parse_exit_plan({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Result<std::string> store_exit_plan(const std::string& folder, const ModelSource& model,
                                    std::string_view text) {
  const auto name = file_name(model);
  if (!name) return fail(ErrorCode::unsupported, "a model in memory has no place in the cache");
  OCTAVO_TRY(const PrivateFolder opened, PrivateFolder::open(folder));
  OCTAVO_TRY(PrivateFolder::NewFile file, opened.create(text.size()));
  OCTAVO_CHECK_OK(file.write(std::as_bytes(std::span(text)), 0));
  OCTAVO_CHECK_OK(file.commit(*name));
  return opened.path() + "/" + *name;
}

}  // namespace octavo
