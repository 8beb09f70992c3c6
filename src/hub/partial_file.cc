#include "hub/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

constexpr size_t kReadBytes = 1 << 20;
constexpr double kMega = 1e6;

std::string partial_path_of(const std::string& path, const HubFile& file) {
  const fs::path whole(path);
  return (whole.parent_path() /
          fmt::format(".{}.{}.part", whole.filename().string(), file.digest.substr(0, 16)))
      .string();
}

tl::unexpected<Error> no_room(const std::string& folder, int64_t needed, int64_t free) {
  return fail(
      ErrorCode::resource_exhausted,
      fmt::format("{} has no room: {:.0f} MB are needed and {:.0f} MB free; make room, or "
                  "set XDG_CACHE_HOME to a folder on another disk",
                  folder, static_cast<double>(needed) / kMega, static_cast<double>(free) / kMega));
}

int64_t free_bytes(const std::string& folder) {
  struct statvfs room {};
  if (::statvfs(folder.c_str(), &room) != 0) return INT64_MAX;
  return static_cast<int64_t>(room.f_bavail) * static_cast<int64_t>(room.f_frsize);
}

// Whether the name still is the file that was opened: whoever had it may have finished it.
bool is_same_file(int descriptor, const std::string& path) {
  struct stat opened {
  }, named{};
  return ::fstat(descriptor, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

Result<FileDescriptor> open_locked(const std::string& path) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!file) return system_error(path, "write");
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) break;
    if (is_same_file(file.get(), path)) return file;
  }
  return fail(ErrorCode::resource_exhausted,
              fmt::format("another process fetches {}; wait until it is done", path));
}

// Calls take(bytes) for all of a file, from its beginning; false if it cannot be read.
template <class Take>
bool read_all(int descriptor, Take take) {
  std::vector<char> buffer(kReadBytes);
  for (int64_t offset = 0;;) {
    const ssize_t count = ::pread(descriptor, buffer.data(), buffer.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count == 0;
    take(std::string_view(buffer.data(), static_cast<size_t>(count)));
    offset += count;
  }
}

}  // namespace

// --- Digest ---------------------------------------------------------------------------------

struct Digest::Context {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(context); }
};

Digest::Digest(bool is_sha256, int64_t size) : context_(std::make_unique<Context>()) {
  EVP_DigestInit_ex(context_->context, is_sha256 ? EVP_sha256() : EVP_sha1(), nullptr);
  // Git counts what it hashes first.
  if (!is_sha256) {
    add(fmt::format("blob {}", size));
    add(std::string_view("\0", 1));
  }
}
Digest::~Digest() = default;
Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;

void Digest::add(std::string_view bytes) {
  EVP_DigestUpdate(context_->context, bytes.data(), bytes.size());
}

std::string Digest::hex() {
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  if (EVP_DigestFinal_ex(context_->context, bytes, &length) != 1) return {};
  std::string out;
  for (unsigned int i = 0; i < length; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}

bool is_whole(const std::string& path, const HubFile& file) {
  const FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!descriptor || ::fstat(descriptor.get(), &facts) != 0 || facts.st_size != file.size)
    return false;
  Digest digest(file.has_sha256(), file.size);
  return read_all(descriptor.get(), [&](std::string_view bytes) { digest.add(bytes); }) &&
         digest.hex() == file.digest;
}

int64_t partial_size(const std::string& path, const HubFile& file) {
  std::error_code error;
  const auto size = fs::file_size(partial_path_of(path, file), error);
  return error ? 0 : std::min(static_cast<int64_t>(size), file.size);
}

Result<void> check_room(const std::string& folder, int64_t bytes) {
  const int64_t free = free_bytes(folder);
  if (bytes > free) return no_room(folder, bytes, free);
  return {};
}

// --- PartialFile ----------------------------------------------------------------------------

PartialFile::PartialFile(std::string path, HubFile file, FileDescriptor descriptor)
    : path_(std::move(path)),
      file_(std::move(file)),
      descriptor_(std::move(descriptor)),
      digest_(file_.has_sha256(), file_.size) {}

std::string PartialFile::partial_path() const { return partial_path_of(path_, file_); }

Result<PartialFile> PartialFile::open(const std::string& path, const HubFile& file) {
  const std::string folder = fs::path(path).parent_path().string();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::io_error,
                fmt::format("{}: cannot be made: {}", folder, error.message()));
  OCTAVO_TRY(FileDescriptor descriptor, open_locked(partial_path_of(path, file)));
  PartialFile partial(path, file, std::move(descriptor));
  OCTAVO_CHECK_OK(partial.read_existing());
  OCTAVO_CHECK_OK(check_room(folder, file.size - partial.size()));
  return partial;
}

Result<void> PartialFile::read_existing() {
  int64_t size = 0;
  const bool read = read_all(descriptor_.get(), [&](std::string_view bytes) {
    size += std::ssize(bytes);
    digest_.add(bytes);
  });
  if (!read) return system_error(partial_path(), "read");
  size_ = size;
  return size > file_.size ? start_over() : Result<void>();
}

Result<std::string> PartialFile::content() const {
  std::string bytes;
  if (!read_all(descriptor_.get(), [&](std::string_view more) { bytes += more; }))
    return system_error(partial_path(), "read");
  return bytes;
}

Result<void> PartialFile::append(std::string_view bytes) {
  if (std::ssize(bytes) > file_.size - size_)
    return fail(ErrorCode::corrupt_file,
                fmt::format("the hub sends more than the {} bytes that {} has by its own list",
                            file_.size, file_.path));
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), size_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == ENOSPC || errno == EDQUOT))
      return no_room(fs::path(path_).parent_path().string(), file_.size - size_, 0);
    if (count < 0) return system_error(partial_path(), "write");
    const auto written = bytes.substr(0, static_cast<size_t>(count));
    digest_.add(written);
    size_ += count;
    bytes.remove_prefix(written.size());
  }
  return {};
}

Result<void> PartialFile::start_over() {
  if (::ftruncate(descriptor_.get(), 0) != 0) return system_error(partial_path(), "write");
  digest_ = Digest(file_.has_sha256(), file_.size);
  size_ = 0;
  return {};
}

Result<void> PartialFile::finish() {
  if (digest_.hex() != file_.digest) {
    ::unlink(partial_path().c_str());
    return fail(ErrorCode::corrupt_file,
                fmt::format("what came of {} has not the checksum that the hub names, and was "
                            "deleted; try again",
                            file_.path));
  }
  if (::fsync(descriptor_.get()) != 0) return system_error(partial_path(), "save");
  if (::rename(partial_path().c_str(), path_.c_str()) != 0) return system_error(path_, "write");
  return {};
}

}  // namespace octavo::hub
