#include "engine/hub_name.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "engine/catalog.h"
#include "formats/gguf_part_name.h"
#include "formats/quote.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxPart = 128;     // bytes
constexpr int kMaxFolderDepth = 16;  // of a file in its repository
constexpr std::string_view kExtension = ".gguf";

bool is_part_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '+' || c == '-';
}

bool is_part(std::string_view part) {
  return !part.empty() && part.size() <= kMaxPart && part.front() != '.' && part.front() != '-' &&
         std::all_of(part.begin(), part.end(), is_part_char);
}

bool ends_in_gguf(std::string_view path) {
  return path.size() > kExtension.size() && path.ends_with(kExtension);
}

tl::unexpected<Error> bad_name(std::string_view text, std::string_view what) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} is no name of a model on a hub: {}; it is ORG/NAME or "
                          "ORG/NAME:FILE.gguf, of letters, digits and . _ + -",
                          quote(text), what));
}

// Of the files of a model in several parts the first stands for all; without one of them there is
// no model. REQUIRES: sorted.
std::vector<std::string> models_of(const std::vector<std::string>& files) {
  std::vector<std::string> models;
  for (const std::string& file : files) {
    const auto part = parse_gguf_part_name(file);
    bool is_whole = !part || part->number == 1;
    for (uint32_t number = 2; is_whole && part && number <= part->count; ++number)
      is_whole = std::ranges::binary_search(files, part->of(number));
    if (is_whole) models.push_back(file);
  }
  return models;
}

// The models below a folder that are files, as paths from it.
std::vector<std::string> models_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (it.depth() > kMaxFolderDepth) it.disable_recursion_pending();
    std::string path = fs::path(it->path()).lexically_relative(folder).string();
    std::error_code ignored;
    if (it->is_regular_file(ignored) && is_hub_file(path)) files.push_back(std::move(path));
  }
  std::sort(files.begin(), files.end());
  return models_of(files);
}

bool is_whole_folder(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / kFolderMark, error);
}

std::vector<std::string> subfolders(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error, ignored;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (std::string name = it->path().filename().string();
        is_part(name) && it->is_directory(ignored))
      names.push_back(std::move(name));
  return names;
}

// The file that was named, or the first part of its model, if all are there.
std::optional<std::string> find_file(const HubName& name) {
  const std::string path = cache_path(name);
  const auto part = parse_gguf_part_name(path);
  std::error_code error;
  for (uint32_t number = 1; part && number <= part->count; ++number)
    if (!fs::is_regular_file(part->of(number), error)) return std::nullopt;
  if (!part && !fs::is_regular_file(path, error)) return std::nullopt;
  return part ? part->of(1) : path;
}

// "org/name" of each folder that is whole.
std::vector<std::string> cached_folders() {
  std::vector<std::string> folders;
  for (const std::string& org : subfolders(hub_folder()))
    for (const std::string& name : subfolders(fs::path(hub_folder()) / org))
      if (is_whole_folder(fs::path(hub_folder()) / org / name)) folders.push_back(org + "/" + name);
  return folders;
}

}  // namespace

bool looks_like_hub_name(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view repository = text.substr(0, colon);
  if (repository.empty() || repository.front() == '.' || repository.front() == '/') return false;
  if (colon != std::string_view::npos && repository.find('/') != std::string_view::npos)
    return true;
  return std::count(repository.begin(), repository.end(), '/') == 1 && !ends_in_gguf(repository);
}

bool is_hub_file(std::string_view path) {
  if (!ends_in_gguf(path)) return false;
  for (int depth = 0; depth < kMaxFolderDepth; ++depth) {
    const size_t slash = path.find('/');
    if (!is_part(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
  return false;
}

Result<HubName> parse_hub_name(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view repository = text.substr(0, colon);
  const size_t slash = repository.find('/');
  if (slash == std::string_view::npos)
    return bad_name(text, "there is no '/' in it, and scripts/fetch-model fetches by short names");
  HubName name{std::string(repository.substr(0, slash)), std::string(repository.substr(slash + 1))};
  if (!is_part(name.org)) return bad_name(text, "the part before the '/' cannot be");
  if (!is_part(name.name)) return bad_name(text, "the part after the '/' cannot be");
  if (colon == std::string_view::npos) return name;
  name.file = text.substr(colon + 1);
  if (!is_hub_file(name.file))
    return bad_name(text, "the file cannot be, or does not end in .gguf");
  return name;
}

bool is_folder_file(std::string_view path) {
  constexpr std::string_view kTexts[] = {"config.json",
                                         "generation_config.json",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "chat_template.jinja",
                                         "model.safetensors.index.json",
                                         "modules.json",
                                         "1_Pooling/config.json",
                                         "additional_chat_templates/tool_use.jinja"};
  return std::find(std::begin(kTexts), std::end(kTexts), path) != std::end(kTexts) ||
         (is_part(path) && path.ends_with(".safetensors"));
}

std::string hub_folder() { return models_folder() + "/hub"; }
std::string cache_folder(const HubName& name) { return hub_folder() + "/" + name.repository(); }
std::string cache_path(const HubName& name) { return cache_folder(name) + "/" + name.file; }

std::vector<std::string> cached_hub_models() {
  std::vector<std::string> models;
  for (const std::string& path : models_below(hub_folder())) {
    const size_t org = path.find('/');
    const size_t name = org == std::string::npos ? org : path.find('/', org + 1);
    if (name != std::string::npos)
      models.push_back(path.substr(0, name) + ":" + path.substr(name + 1));
  }
  for (std::string& folder : cached_folders()) models.push_back(std::move(folder));
  std::sort(models.begin(), models.end());
  return models;
}

Result<std::optional<std::string>> find_cached(const HubName& name) {
  if (!name.file.empty()) return find_file(name);
  const std::vector<std::string> files = models_below(cache_folder(name));
  if (files.empty() && is_whole_folder(cache_folder(name))) return cache_folder(name);
  if (files.empty()) return std::nullopt;
  if (files.size() > 1)
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("several files of {} are here; name one, as in {}:{} ({})", name.repository(),
                    name.repository(), files.front(), fmt::join(files, ", ")));
  return cache_folder(name) + "/" + files.front();
}

}  // namespace octavo
