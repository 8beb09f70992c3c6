#include "cli/generation_config.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/input.h"
#include "engine/catalog.h"
#include "formats/shallow_json.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kMaxBytes = 1 << 20;
constexpr int kMaxDepth = 32;

template <class T>
Result<void> take(const Json& json, const char* name, T& value, const std::string& path) {
  const auto found = json.find(name);
  if (found == json.end() || found->is_null()) return {};
  if (!found->is_number())
    return fail(ErrorCode::corrupt_file, fmt::format("'{}': {} is no number", path, name));
  value = found->get<T>();
  return {};
}

Result<SamplingParams> read_config(const std::string& path) {
  OCTAVO_TRY(const std::string text, cli::read_text_file(path, kMaxBytes));
  const Json json = parse_shallow_json(text, kMaxDepth).root;
  if (!json.is_object())
    return fail(ErrorCode::corrupt_file, fmt::format("'{}' is no JSON object", path));
  SamplingParams params;
  if (json.value("do_sample", Json(true)) == Json(false)) {
    params.temperature = 0;
    return params;
  }
  OCTAVO_CHECK_OK(take(json, "temperature", params.temperature, path));
  OCTAVO_CHECK_OK(take(json, "top_p", params.top_p, path));
  OCTAVO_CHECK_OK(take(json, "top_k", params.top_k, path));
  OCTAVO_CHECK_OK(take(json, "min_p", params.min_p, path));
  OCTAVO_CHECK_OK(take(json, "repetition_penalty", params.repetition_penalty, path));
  OCTAVO_CHECK_OK(validate(params, INT32_MAX));
  return params;
}

}  // namespace

Result<SamplingParams> generation_defaults(const std::string& which,
                                           const std::string& model_path) {
  if (which == "none" || which == "vllm") return SamplingParams{};
  if (which != "auto") {
    std::error_code error;
    return read_config(fs::is_directory(which, error) ? which + "/generation_config.json" : which);
  }
  if (const CatalogEntry* known = find_in_catalog(model_path)) {
    SamplingParams params;
    params.temperature = known->temperature;
    params.top_p = known->top_p;
    return params;
  }
  std::error_code error;
  const fs::path model(model_path);
  const fs::path beside =
      (fs::is_directory(model, error) ? model : model.parent_path()) / "generation_config.json";
  if (fs::is_regular_file(beside, error)) return read_config(beside.string());
  return SamplingParams{};
}

}  // namespace octavo
