// A file on its way into the cache: bytes that may have come in several attempts, of several runs
// of this program, and are checked as a whole before the file has its name.
//
// Beside its final place there is ".FILE.DIGEST.part": what is kept of another version of the file
// is never continued. One process at a time has it (flock), which a crash gives back.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "hub/file_list.h"

namespace octavo::hub {

// The checksum of a file of this size, over pieces.
class Digest {
 public:
  Digest(bool is_sha256, int64_t size);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void add(std::string_view bytes);
  std::string hex();  // ends it

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Whether the file at `path` is this one, whole. False if it cannot be read.
bool is_whole(const std::string& path, const HubFile& file);

// How many bytes of it are there already, on their way.
int64_t partial_size(const std::string& path, const HubFile& file);

// resource_exhausted: the disk of this folder has not so much room.
Result<void> check_room(const std::string& folder, int64_t bytes);

class PartialFile {
 public:
  // Makes the folders above. Reads what is there already. Errors: io_error (the system refuses),
  // resource_exhausted (another process fetches it; the disk has too little room).
  static Result<PartialFile> open(const std::string& path, const HubFile& file);

  int64_t size() const { return size_; }
  Result<std::string> content() const;  // what there is of it
  bool is_complete() const { return size_ == file_.size; }

  Result<void> append(std::string_view bytes);
  Result<void> start_over();
  // Checks it and gives it its name. corrupt_file if the checksum is another: then it is deleted.
  Result<void> finish();

 private:
  PartialFile(std::string path, HubFile file, FileDescriptor descriptor);
  Result<void> read_existing();
  std::string partial_path() const;

  std::string path_;
  HubFile file_;
  FileDescriptor descriptor_;
  Digest digest_;
  int64_t size_ = 0;
};

}  // namespace octavo::hub
