// What a hub says of the files of a repository.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace octavo::hub {

// A file by the checksum that the hub gives for it.
struct HubFile {
  std::string path;
  int64_t size = 0;  // bytes, at least 1
  // In lower-case hex digits. SHA-256 of large files; of small ones, kept by git itself, the SHA-1
  // that git gives them.
  std::string digest;

  bool has_sha256() const { return digest.size() == 64; }
};

// What of a repository a model may be made of.
struct FileList {
  std::vector<HubFile> gguf;    // is_hub_file()
  std::vector<HubFile> folder;  // is_folder_file()

  const HubFile* find_in_folder(std::string_view path) const;  // nullptr: not there
};

// Adds a page of the tree API. What is none of these files, or has a name that could not be kept,
// is left out. io_error: it is no such list.
Result<void> add_file_list(std::string_view json, FileList& list);

// The GGUF file of this path, or all parts, in order, of the model that it is a part of; empty: the
// only model. Errors: not_found (also of parts that the repository lacks), invalid_argument
// (several models); they name what there is.
Result<std::vector<HubFile>> choose_model(const std::vector<HubFile>& files, std::string_view path,
                                          std::string_view repository);

}  // namespace octavo::hub
