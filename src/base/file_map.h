// A whole file mapped read-only into memory. Owns the mapping. A file that another program shortens
// while it is mapped is out of scope: the system ends the process.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace octavo {

class FileMap {
 public:
  // Errors: not_found (no such file), io_error (a directory, not a regular file, not readable),
  // corrupt_file (empty).
  static Result<FileMap> open(const std::string& path);

  FileMap(FileMap&& other) noexcept;
  FileMap& operator=(FileMap&& other) noexcept;
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;
  ~FileMap();

  // Stays at the same address when the FileMap is moved.
  std::span<const std::byte> bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  const std::string& path() const { return path_; }

  // Returns to the system the memory of the whole pages inside `part`; they are read again from the
  // file if touched. REQUIRES: part lies inside bytes(). Returns the number of bytes given back.
  size_t drop(std::span<const std::byte> part) const;

 private:
  FileMap(std::span<const std::byte> bytes, std::string path);
  void unmap();

  std::span<const std::byte> bytes_;
  std::string path_;
};

}  // namespace octavo
