#include "hub/file_set.h"

#include <algorithm>
#include <filesystem>

namespace octavo::hub {

Result<void> FileSet::fetch_missing(const std::vector<HubFile>& wanted,
                                    const std::function<void()>& before) {
  std::vector<HubFile> missing;
  for (const HubFile& file : wanted)
    if (!is_whole(path_of(file), file)) missing.push_back(file);
  if (missing.empty()) return {};
  OCTAVO_CHECK_OK(check_room_for(missing));
  if (before) before();
  done_ = total_ = 0;
  for (const HubFile& file : missing) total_ += file.size;
  for (const HubFile& file : missing) OCTAVO_CHECK_OK(fetch(file));
  return {};
}

Result<void> FileSet::check_room_for(const std::vector<HubFile>& missing) const {
  std::error_code error;
  // Opening a file in it says what is wrong, if anything.
  std::filesystem::create_directories(folder_, error);
  int64_t bytes = 0;
  for (const HubFile& file : missing) bytes += file.size - partial_size(path_of(file), file);
  return check_room(folder_, bytes);
}

Result<void> FileSet::fetch(const HubFile& file) {
  if (is_whole(path_of(file), file)) return {};
  OCTAVO_TRY(PartialFile partial, PartialFile::open(path_of(file), file));
  OCTAVO_CHECK_OK(transfer_.fetch(file, partial, [&] {
    if (options_.on_progress)
      options_.on_progress(done_ + partial.size(), std::max(total_, done_ + file.size));
  }));
  OCTAVO_CHECK_OK(partial.finish());
  done_ += file.size;
  return {};
}

}  // namespace octavo::hub
