#include "hub/pull_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/file_map.h"
#include "formats/hf_metadata.h"
#include "formats/shards.h"
#include "hub/file_set.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr int64_t kMaxConfigBytes = 1 << 20;

class FolderPull {
 public:
  FolderPull(const Transfer& transfer, const FileList& files, const HubName& name,
             const HubOptions& options)
      : transfer_(transfer),
        files_(files),
        name_(name),
        folder_(cache_folder(name)),
        set_(transfer, options, folder_) {}

  Result<std::string> run() {
    OCTAVO_TRY(const HubFile* config, need(kFolderMark));
    OCTAVO_CHECK_OK(need("tokenizer.json"));
    OCTAVO_CHECK_OK(check_config(*config));
    OCTAVO_TRY(const std::vector<HubFile> wanted, wanted_files());
    OCTAVO_CHECK_OK(fetch_missing(wanted));
    remove_others(wanted);
    OCTAVO_CHECK_OK(set_.fetch(*config));
    return folder_;
  }

 private:
  std::string path_of(const HubFile& file) const { return set_.path_of(file); }

  Result<const HubFile*> need(std::string_view path) const {
    const HubFile* file = files_.find_in_folder(path);
    if (file) return file;
    return fail(ErrorCode::not_found,
                fmt::format("{} has no GGUF file, and no whole folder of safetensors: {} is not "
                            "there; look for a repository that has",
                            name_.repository(), path));
  }

  // Before gigabytes come, whether the model can be used at all. What came is kept for the end.
  Result<void> check_config(const HubFile& config) {
    if (config.size > kMaxConfigBytes)
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: config.json has {} bytes, above the "
                              "limit of {}",
                              name_.repository(), config.size, kMaxConfigBytes));
    if (is_whole(path_of(config), config)) return {};
    OCTAVO_TRY(PartialFile partial, PartialFile::open(path_of(config), config));
    OCTAVO_CHECK_OK(transfer_.fetch(config, partial, {}));
    OCTAVO_TRY(const std::string text, partial.content());
    const auto metadata = read_hf_metadata(text, name_.repository() + "/config.json", "");
    if (!metadata) return tl::unexpected<Error>(metadata.error());
    return {};
  }

  // All but config.json.
  Result<std::vector<HubFile>> wanted_files() {
    OCTAVO_TRY(std::vector<HubFile> wanted, weights());
    for (const HubFile& file : files_.folder) {
      const bool is_weights = file.path.ends_with(".safetensors") || file.path == kIndex;
      if (!is_weights && file.path != kFolderMark) wanted.push_back(file);
    }
    // The small ones first.
    std::stable_sort(wanted.begin(), wanted.end(), [](const HubFile& a, const HubFile& b) {
      return a.path.ends_with(".safetensors") < b.path.ends_with(".safetensors");
    });
    return wanted;
  }

  // The index and what it names, as reading counts it (formats/shards.h), or one file.
  Result<std::vector<HubFile>> weights() {
    const HubFile* index = files_.find_in_folder(kIndex);
    if (!index) return need(kSingle).map([](const HubFile* file) { return std::vector{*file}; });
    OCTAVO_CHECK_OK(fetch_missing({*index}));
    OCTAVO_TRY(const FileMap map, FileMap::open(path_of(*index)));
    OCTAVO_TRY(const ShardIndex shards,
               ShardIndex::parse({reinterpret_cast<const char*>(map.bytes().data()), map.size()},
                                 fmt::format("{}/{}", name_.repository(), kIndex)));
    std::vector<HubFile> wanted = {*index};
    for (const std::string& shard : shards.files) {
      OCTAVO_TRY(const HubFile* file, need(shard));
      wanted.push_back(*file);
    }
    return wanted;
  }

  // Until all is there, the folder is not whole.
  Result<void> fetch_missing(const std::vector<HubFile>& wanted) {
    return set_.fetch_missing(wanted, [&] {
      std::error_code error;
      fs::remove(fs::path(folder_) / kFolderMark, error);
    });
  }

  // What an older version had would be read as part of this one.
  void remove_others(const std::vector<HubFile>& wanted) const {
    std::error_code error, ignored;
    for (fs::recursive_directory_iterator it(folder_, error), end; !error && it != end;
         it.increment(error)) {
      const std::string found = it->path().lexically_relative(folder_).string();
      const bool is_wanted = found == kFolderMark ||
                             std::any_of(wanted.begin(), wanted.end(),
                                         [&](const HubFile& file) { return file.path == found; });
      if (is_folder_file(found) && !is_wanted) fs::remove(it->path(), ignored);
    }
  }

  const Transfer& transfer_;
  const FileList& files_;
  const HubName& name_;
  std::string folder_;
  FileSet set_;
};

}  // namespace

Result<std::string> pull_folder(const Transfer& transfer, const FileList& files,
                                const HubName& name, const HubOptions& options) {
  return FolderPull(transfer, files, name, options).run();
}

}  // namespace octavo::hub
