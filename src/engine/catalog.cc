#include "engine/catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "engine/hub_name.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr std::array kCatalog = {
    CatalogEntry{"smollm2-135m", "smollm2-135m-q4_1.gguf", 0.2, 0.9},
    CatalogEntry{"all-minilm-l6-v2", "all-minilm-l6-v2", 1, 1},
};

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".gguf") names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Empty: the environment names none.
std::string cache_root() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache) return cache;
  const char* home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache" : "";
}

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

tl::unexpected<Error> not_there(std::string_view model, const std::string& folder) {
  std::vector<std::string_view> known;
  for (const CatalogEntry& entry : kCatalog) known.push_back(entry.name);
  const std::vector<std::string> files = files_in(folder);
  return fail(ErrorCode::not_found,
              fmt::format("no model '{}': it is neither a file nor a known name ({}). {} holds {}; "
                          "scripts/fetch-model "
                          "NAME fetches a known one",
                          model, fmt::join(known, ", "), folder,
                          files.empty() ? "no models" : fmt::format("{}", fmt::join(files, ", "))));
}

Result<std::string> resolve_hub_model(std::string_view model) {
  OCTAVO_TRY(const HubName name, parse_hub_name(model));
  OCTAVO_TRY(const std::optional<std::string> cached, find_cached(name));
  if (cached) return *cached;
  const std::vector<std::string> models = cached_hub_models();
  return fail(
      ErrorCode::not_found,
      fmt::format("'{}' is no file, and no such model is here; octavo pull {} fetches it. "
                  "{} holds {}",
                  model, model, hub_folder(),
                  models.empty() ? "no models" : fmt::format("{}", fmt::join(models, ", "))));
}

}  // namespace

std::span<const CatalogEntry> catalog() { return kCatalog; }

const CatalogEntry* find_in_catalog(std::string_view path) {
  const std::string file = fs::path(path).filename().string();
  for (const CatalogEntry& entry : kCatalog)
    if (entry.file == file) return &entry;
  return nullptr;
}

std::string models_folder() { return cache_root() + "/octavo/models"; }

std::string packs_folder() {
  const std::string root = cache_root();
  return root.empty() ? "" : root + "/octavo/packs";
}

Result<std::string> resolve_model(std::string_view model) {
  const std::string path(model);
  if (is_file(path)) return path;
  if (looks_like_hub_name(model)) return resolve_hub_model(model);
  const std::string folder = models_folder();
  for (const CatalogEntry& entry : kCatalog)
    if (entry.name == model) {
      const std::string file = fmt::format("{}/{}", folder, entry.file);
      if (is_file(file)) return file;
      return fail(ErrorCode::not_found,
                  fmt::format("model '{}' is not in {}; scripts/fetch-model {} fetches it", model,
                              folder, model));
    }
  const std::string file = fmt::format("{}/{}", folder, model);
  if (!model.empty() && model.find('/') == std::string_view::npos && is_file(file)) return file;
  return not_there(model, folder);
}

}  // namespace octavo
