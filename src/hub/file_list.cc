#include "hub/file_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "engine/hub_name.h"
#include "formats/gguf_part_name.h"
#include "formats/shallow_json.h"

namespace octavo::hub {
namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxNamed = 40;                // files in a message
constexpr int64_t kMaxSize = int64_t{1} << 42;  // 4 TiB

tl::unexpected<Error> not_a_list(std::string_view what) {
  return fail(
      ErrorCode::io_error,
      fmt::format("the hub's list of files is not understood: {}; is HF_ENDPOINT right?", what));
}

std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

int64_t size_of(const nlohmann::json& object) {
  const auto found = object.find("size");
  if (found == object.end() || !found->is_number_unsigned()) return 0;
  const auto size = found->get<uint64_t>();
  return size <= static_cast<uint64_t>(kMaxSize) ? static_cast<int64_t>(size) : 0;
}

bool is_hex(std::string_view text, size_t length) {
  return text.size() == length && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

HubFile file_of(const nlohmann::json& entry) {
  HubFile file{text_at(entry, "path"), size_of(entry), text_at(entry, "oid")};
  if (const auto lfs = entry.find("lfs"); lfs != entry.end() && lfs->is_object()) {
    file.size = size_of(*lfs);
    file.digest = text_at(*lfs, "oid");
    if (file.digest.empty()) file.digest = text_at(*lfs, "sha256");
    if (!is_hex(file.digest, 64)) file.digest.clear();
  } else if (!is_hex(file.digest, 40)) {
    file.digest.clear();
  }
  return file;
}

const HubFile* find(const std::vector<HubFile>& files, std::string_view path) {
  const auto it = std::ranges::find(files, path, &HubFile::path);
  return it == files.end() ? nullptr : &*it;
}

// Of a model in several parts the first of the list stands for all.
std::vector<HubFile> models_of(const std::vector<HubFile>& files) {
  std::vector<HubFile> models;
  std::set<std::pair<std::string, uint32_t>> known;
  for (const HubFile& file : files) {
    const auto part = parse_gguf_part_name(file.path);
    if (!part || known.emplace(part->stem, part->count).second) models.push_back(file);
  }
  return models;
}

std::string named(const std::vector<HubFile>& files) {
  std::vector<std::string> names;
  for (const HubFile& file : files) {
    const auto part = parse_gguf_part_name(file.path);
    if (names.size() < kMaxNamed)
      names.push_back(part ? fmt::format("{} and its other parts", file.path) : file.path);
  }
  return fmt::format("{}{}", fmt::join(names, ", "), files.size() > kMaxNamed ? ", ..." : "");
}

Result<std::vector<HubFile>> all_parts(const std::vector<HubFile>& files, const HubFile& file,
                                       std::string_view repository) {
  const auto part = parse_gguf_part_name(file.path);
  if (!part) return std::vector{file};
  std::map<std::string_view, const HubFile*> by_path;
  for (const HubFile& other : files) by_path.emplace(other.path, &other);
  std::vector<HubFile> parts;
  for (uint32_t number = 1; number <= part->count; ++number) {
    const auto found = by_path.find(part->of(number));
    if (found == by_path.end())
      return fail(ErrorCode::not_found,
                  fmt::format("{} has no file {}, which is a part of the same model as {}",
                              repository, part->of(number), file.path));
    parts.push_back(*found->second);
  }
  return parts;
}

}  // namespace

const HubFile* FileList::find_in_folder(std::string_view path) const {
  const auto it = std::find_if(folder.begin(), folder.end(),
                               [&](const HubFile& file) { return file.path == path; });
  return it == folder.end() ? nullptr : &*it;
}

Result<void> add_file_list(std::string_view text, FileList& list) {
  const ShallowJson json = parse_shallow_json(text, kMaxDepth);
  if (json.too_deep || !json.root.is_array()) return not_a_list("it is no list of JSON");
  for (const nlohmann::json& entry : json.root) {
    if (!entry.is_object()) return not_a_list("an entry is no object");
    HubFile file = file_of(entry);
    if (text_at(entry, "type") != "file" || file.size == 0 || file.digest.empty()) continue;
    if (is_hub_file(file.path))
      list.gguf.push_back(std::move(file));
    else if (is_folder_file(file.path))
      list.folder.push_back(std::move(file));
  }
  return {};
}

Result<std::vector<HubFile>> choose_model(const std::vector<HubFile>& files, std::string_view path,
                                          std::string_view repository) {
  const std::vector<HubFile> models = models_of(files);
  if (models.empty())
    return fail(ErrorCode::not_found,
                fmt::format("{} has no GGUF file; look for a repository that has", repository));
  if (path.empty()) {
    if (models.size() == 1) return all_parts(files, models[0], repository);
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} has {} GGUF files; name one, as in {}:{} ({})", repository,
                            models.size(), repository, models[0].path, named(models)));
  }
  if (const HubFile* file = find(files, path)) return all_parts(files, *file, repository);
  return fail(ErrorCode::not_found,
              fmt::format("{} has no file {}; it has {}", repository, path, named(models)));
}

}  // namespace octavo::hub
