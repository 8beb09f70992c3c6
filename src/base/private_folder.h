// A folder for files of this program that nobody else can have put there: owned by this user, not
// writable by others, the same for each file in it. Files appear whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/file_map.h"
#include "base/result.h"

namespace octavo {

class PrivateFolder {
 public:
  // Makes it, and what is missing above it, for this user alone (0700). Errors: invalid_argument
  // (it is another user's, or others can write to it), io_error and not_found (the system refused).
  static Result<PrivateFolder> open(const std::string& path);

  const std::string& path() const { return path_; }

  // Links are not followed. Errors: those of FileMap::open; invalid_argument (as for the folder).
  Result<FileMap> map(const std::string& name) const;

  struct Entry {
    std::string name;
    uint64_t size = 0;
    int64_t modified_ns = 0;  // since 1970
  };
  // Regular files, in no order; those that cannot be looked at are left out.
  std::vector<Entry> entries() const;

  void remove(const std::string& name) const;
  // Removes it only if it still is that file: another program may have put a new one there.
  void remove(const std::string& name, const FileIdentity& file) const;
  // Makes the file's time of change the present.
  void touch(const std::string& name) const;

  // A file on its way, readable by this user alone (0600). What is not committed is gone with the
  // object; kTemporaryPrefix begins the names of what a killed program left.
  class NewFile {
   public:
    NewFile(NewFile&& other) noexcept = default;
    NewFile& operator=(NewFile&&) = delete;
    ~NewFile();

    Result<void> write(std::span<const std::byte> bytes, uint64_t offset);
    // To the disk, then under its name, in place of any file there.
    Result<void> commit(const std::string& name);

   private:
    friend class PrivateFolder;
    NewFile(const PrivateFolder& folder, FileDescriptor file, std::string temporary)
        : folder_(&folder), file_(std::move(file)), temporary_(std::move(temporary)) {}
    const PrivateFolder* folder_;  // must outlive this
    FileDescriptor file_;
    std::string temporary_;
  };
  static constexpr std::string_view kTemporaryPrefix = ".new-";

  // Room for size bytes is taken at once where the file system can do that. Errors: io_error.
  Result<NewFile> create(uint64_t size) const;

 private:
  PrivateFolder(std::string path, FileDescriptor folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  std::string path_;
  FileDescriptor folder_;
};

}  // namespace octavo
