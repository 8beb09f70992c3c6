#include "formats/hf_pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>

#include "base/file_map.h"
#include "formats/json_section.h"
#include "formats/quote.h"

namespace octavo {
namespace {

using nlohmann::json;

struct Mode {
  const char* field;      // of older files: true or false
  std::string_view name;  // of newer ones: pooling_mode
  uint32_t type;          // of GGUF; 0: not supported
};
constexpr Mode kModes[] = {{"pooling_mode_mean_tokens", "mean", 1},
                           {"pooling_mode_cls_token", "cls", 2},
                           {"pooling_mode_lasttoken", "lasttoken", 3},
                           {"pooling_mode_max_tokens", "max", 0},
                           {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", 0},
                           {"pooling_mode_weightedmean_tokens", "weightedmean", 0}};

Result<json> read_json(const std::string& path) {
  OCTAVO_TRY(const FileMap map, FileMap::open(path));
  const std::string_view text(reinterpret_cast<const char*>(map.bytes().data()), map.size());
  // The reader takes objects, and modules.json is a list.
  const bool is_list = text.substr(0, text.find('{')).find('[') != std::string_view::npos;
  OCTAVO_TRY(json root,
             parse_config_json(
                 is_list ? fmt::format(R"({{"modules":{}}})", text) : std::string(text), path));
  return root;
}

tl::unexpected<Error> unsupported(const std::string& path, std::string_view what) {
  return fail(ErrorCode::unsupported,
              fmt::format("{}: {} is not supported, so that embeddings would be others than the "
                          "model's",
                          path, what));
}

// A name in the folder, and nothing that leads out of it.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name.front() != '.' && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
  });
}

Result<uint32_t> read_mode(const std::string& path) {
  OCTAVO_TRY(const json root, read_json(path));
  const JsonSection section(root, path, "");
  const json* named = section.find("pooling_mode");
  std::optional<Mode> chosen;
  for (const Mode& mode : kModes) {
    OCTAVO_TRY(const auto on, section.find_bool(mode.field));
    if (!on.value_or(false) && !(named && *named == mode.name)) continue;
    if (chosen) return unsupported(path, "more than one kind of pooling");
    chosen = mode;
  }
  if (!chosen && named) return unsupported(path, "pooling_mode " + quote(named->dump()));
  if (!chosen) return fail(ErrorCode::corrupt_file, path + ": names no kind of pooling");
  if (chosen->type == 0) return unsupported(path, fmt::format("{} pooling", chosen->name));
  return chosen->type;
}

// Empty if there is none.
std::string text_of(const json& module, const char* field) {
  const auto it = module.find(field);
  return it != module.end() && it->is_string() ? it->get<std::string>() : "";
}

}  // namespace

Result<void> read_hf_pooling(const std::string& folder, std::string_view architecture,
                             GgufKeys& keys) {
  const std::string path = folder + "/modules.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  OCTAVO_TRY(const json root, read_json(path));
  const json& modules = root.contains("modules") ? root["modules"] : root;
  const bool are_objects = modules.is_array() && std::ranges::all_of(modules, [](const json& m) {
                             return m.is_object();
                           });
  if (!are_objects) return fail(ErrorCode::corrupt_file, path + ": is no list of modules");
  std::optional<uint32_t> type;
  bool normalizes = false;
  for (const json& module : modules) {
    const std::string full = text_of(module, "type");
    const std::string kind = full.substr(full.rfind('.') + 1);
    if (kind == "Transformer") continue;
    if (kind == "Normalize") {
      normalizes = true;
      continue;
    }
    if (kind != "Pooling") return unsupported(path, "module " + quote(full));
    const std::string place = text_of(module, "path");
    if (!is_plain_name(place))
      return fail(ErrorCode::corrupt_file, fmt::format("{}: path {}", path, quote(place)));
    OCTAVO_TRY(type, read_mode(fmt::format("{}/{}/config.json", folder, place)));
  }
  if (!type) return {};
  keys.u32(fmt::format("{}.pooling_type", architecture), *type);
  keys.boolean(fmt::format("{}.pooling_normalize", architecture), normalizes);
  return {};
}

}  // namespace octavo
