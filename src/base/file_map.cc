#include "base/file_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace octavo {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

tl::unexpected<Error> system_error(const std::string& path, std::string_view action) {
  const int code = errno;
  if (code == ENOENT || code == ENOTDIR)
    return fail(ErrorCode::not_found, fmt::format("{}: no such file; check the path", path));
  return fail(ErrorCode::io_error, fmt::format("{}: cannot {}: {}", path, action,
                                               std::generic_category().message(code)));
}

Result<size_t> regular_file_size(const std::string& path, int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_error(path, "read the file's size");
  if (S_ISDIR(status.st_mode))
    return fail(ErrorCode::io_error,
                fmt::format("{}: is a directory; give the path of a file in it", path));
  if (!S_ISREG(status.st_mode))
    return fail(ErrorCode::io_error,
                fmt::format("{}: is not a regular file and cannot be mapped", path));
  if (status.st_size <= 0)
    return fail(ErrorCode::corrupt_file, fmt::format("{}: the file is empty", path));
  return static_cast<size_t>(status.st_size);
}

}  // namespace

Result<FileMap> FileMap::open(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return system_error(path, "open");
  OCTAVO_TRY(const size_t size, regular_file_size(path, fd.get()));
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) return system_error(path, "map");
  return FileMap({static_cast<const std::byte*>(address), size}, path);
}

FileMap::FileMap(std::span<const std::byte> bytes, std::string path)
    : bytes_(bytes), path_(std::move(path)) {}

FileMap::FileMap(FileMap&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), path_(std::move(other.path_)) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  bytes_ = std::exchange(other.bytes_, {});
  path_ = std::move(other.path_);
  return *this;
}

FileMap::~FileMap() { unmap(); }

void FileMap::unmap() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

size_t FileMap::drop(std::span<const std::byte> part) const {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (start + page - 1) / page * page;
  const uintptr_t last = (start + part.size()) / page * page;
  if (first >= last) return 0;
  // A refusal costs memory only, never correctness.
  if (::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) != 0) return 0;
  return last - first;
}

}  // namespace octavo
