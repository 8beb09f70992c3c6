#include "base/file_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/file_descriptor.h"

namespace octavo {
namespace {

int64_t nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Result<FileIdentity> identify(const std::string& path, int fd) {
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
  return FileIdentity{.device = status.st_dev,
                      .inode = status.st_ino,
                      .size = static_cast<uint64_t>(status.st_size),
                      .modified_ns = nanoseconds(status.st_mtim),
                      .changed_ns = nanoseconds(status.st_ctim)};
}

}  // namespace

Result<FileMap> FileMap::open(const std::string& path) {
  // O_NONBLOCK: opening a named pipe must not wait for a writer.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return system_error(path, "open");
  return of_descriptor(fd.get(), path);
}

Result<FileMap> FileMap::of_descriptor(int fd, const std::string& path) {
  OCTAVO_TRY(const FileIdentity identity, identify(path, fd));
  void* address = ::mmap(nullptr, identity.size, PROT_READ, MAP_SHARED, fd, 0);
  if (address == MAP_FAILED) return system_error(path, "map");
  return FileMap({static_cast<const std::byte*>(address), identity.size}, path, identity);
}

FileMap::FileMap(std::span<const std::byte> bytes, std::string path, FileIdentity identity)
    : bytes_(bytes), path_(std::move(path)), identity_(identity), range_(bytes_, path_) {}

FileMap::FileMap(FileMap&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      path_(std::move(other.path_)),
      identity_(other.identity_),
      range_(std::move(other.range_)) {}

FileMap& FileMap::operator=(FileMap&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  bytes_ = std::exchange(other.bytes_, {});
  path_ = std::move(other.path_);
  identity_ = other.identity_;
  range_ = std::move(other.range_);
  return *this;
}

FileMap::~FileMap() { unmap(); }

// The range is given up first: its addresses may soon belong to another mapping.
void FileMap::unmap() {
  range_ = MappedRange();
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

void FileMap::read_ahead() const {
  ::madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_WILLNEED);
}

}  // namespace octavo
