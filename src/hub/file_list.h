// What a hub says of the files of a repository.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace octavo::hub {

// A GGUF file by the checksum that the hub gives for it.
struct HubFile {
  std::string path;  // is_hub_file()
  int64_t size = 0;  // bytes, at least 1
  // In lower-case hex digits. SHA-256 of large files; of small ones, kept by git itself, the SHA-1
  // that git gives them.
  std::string digest;

  bool has_sha256() const { return digest.size() == 64; }
};

// A page of the tree API: the GGUF files in it. What is no such file, or has a name that could not
// be kept, is left out. io_error: it is no such list.
Result<std::vector<HubFile>> parse_file_list(std::string_view json);

// The file of this path; empty: the only one. Errors: not_found, invalid_argument (several), naming
// what there is.
Result<HubFile> choose_file(const std::vector<HubFile>& files, std::string_view path,
                            std::string_view repository);

}  // namespace octavo::hub
