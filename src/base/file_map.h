// A whole file mapped read-only into memory, shared with everyone who maps it. Owns the mapping. A
// file that another program shortens meanwhile: see base/lost_file_guard.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/lost_file_guard.h"
#include "base/result.h"

namespace octavo {

// Which file it was, and in which state, when it was mapped.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970
  // When anything of the file was last changed, its name or times included: nobody can set it back.
  int64_t changed_ns = 0;
};

class FileMap {
 public:
  // Errors: not_found (no such file), io_error (a directory, not a regular file, not readable),
  // corrupt_file (empty).
  static Result<FileMap> open(const std::string& path);

  // The same of an open file, which stays the caller's; path is for messages.
  static Result<FileMap> of_descriptor(int fd, const std::string& path);

  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;
  ~FileMap();

  // Stays at the same address when the FileMap is moved.
  std::span<const std::byte> bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }

  // Returns to the system the memory of the whole pages inside `part`; they are read again from the
  // file if touched. REQUIRES: part lies inside bytes(). Returns the number of bytes given back.
  size_t drop(std::span<const std::byte> part) const;

  // Asks the system to read the file in the background, as far as it is not in memory yet.
  void read_ahead() const;

 private:
  FileMap(std::span<const std::byte> bytes, std::string path, FileIdentity identity);
  void unmap();

  std::span<const std::byte> bytes_;
  std::string path_;
  FileIdentity identity_;
  MappedRange range_;
};

}  // namespace octavo
