// Files of one repository that are of use together only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/transfer.h"

namespace octavo::hub {

class FileSet {
 public:
  // They are kept in `folder`, by their paths in the repository. The others must outlive the set.
  FileSet(const Transfer& transfer, const HubOptions& options, std::string folder)
      : transfer_(transfer), options_(options), folder_(std::move(folder)) {}

  std::string path_of(const HubFile& file) const { return folder_ + "/" + file.path; }

  // What is not whole yet, after a look at the room that all of it needs. before: when there is
  // something to fetch, before it comes. Errors: as those of pull().
  Result<void> fetch_missing(const std::vector<HubFile>& wanted,
                             const std::function<void()>& before = {});
  Result<void> fetch(const HubFile& file);

 private:
  Result<void> check_room_for(const std::vector<HubFile>& missing) const;

  const Transfer& transfer_;
  const HubOptions& options_;
  std::string folder_;
  int64_t done_ = 0, total_ = 0;  // bytes, for progress
};

}  // namespace octavo::hub
