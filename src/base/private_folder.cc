#include "base/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "base/rng.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

int64_t modified_ns(const struct stat& status) {
  return int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

Result<void> check_private(const std::string& path, int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_error(path, "read its owner");
  if (status.st_uid != ::geteuid())
    return fail(ErrorCode::invalid_argument, fmt::format("{} belongs to another user", path));
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} can be written by others; chmod go-w it", path));
  return {};
}

// As mkdir -p, for this user alone.
void make_folders(const std::string& path) {
  std::error_code ignored;  // opening it says what is wrong
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty() && !fs::exists(parent, ignored)) make_folders(parent.string());
  ::mkdir(path.c_str(), S_IRWXU);
}

FileDescriptor make_temporary(int folder, std::string& name) {
  for (int attempt = 0; attempt < 16; ++attempt) {
    name = fmt::format("{}{:x}-{:x}", PrivateFolder::kTemporaryPrefix, ::getpid(), fresh_seed());
    FileDescriptor file(::openat(folder, name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                                 S_IRUSR | S_IWUSR));
    if (file || errno != EEXIST) return file;
  }
  return {};
}

}  // namespace

Result<PrivateFolder> PrivateFolder::open(const std::string& path) {
  make_folders(path);
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) return system_error(path, "open");
  OCTAVO_CHECK_OK(check_private(path, folder.get()));
  return PrivateFolder(path, std::move(folder));
}

Result<FileMap> PrivateFolder::map(const std::string& name) const {
  const FileDescriptor file(
      ::openat(folder_.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return system_error(path_of(name), "open");
  OCTAVO_CHECK_OK(check_private(path_of(name), file.get()));
  return FileMap::of_descriptor(file.get(), path_of(name));
}

std::vector<PrivateFolder::Entry> PrivateFolder::entries() const {
  std::vector<Entry> found;
  const int fd = ::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(fd), &::closedir);
  if (!folder) {
    ::close(fd);
    return found;
  }
  while (const dirent* entry = ::readdir(folder.get())) {
    struct stat status {};
    if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(status.st_mode))
      found.push_back({entry->d_name, static_cast<uint64_t>(status.st_size), modified_ns(status)});
  }
  return found;
}

void PrivateFolder::remove(const std::string& name) const {
  ::unlinkat(folder_.get(), name.c_str(), 0);
}

void PrivateFolder::remove(const std::string& name, const FileIdentity& file) const {
  struct stat status {};
  if (::fstatat(folder_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (status.st_dev == file.device && status.st_ino == file.inode) remove(name);
}

void PrivateFolder::touch(const std::string& name) const {
  // A refusal makes the file look older than it is, no more.
  [[maybe_unused]] const int refused =
      ::utimensat(folder_.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

Result<PrivateFolder::NewFile> PrivateFolder::create(uint64_t size) const {
  std::string name;
  FileDescriptor file = make_temporary(folder_.get(), name);
  if (!file) return system_error(path_, "make a file in it");
  NewFile made(*this, std::move(file), name);
  // Some file systems cannot do this; on those a full disk is met by write().
  if (::fallocate(made.file_.get(), 0, 0, static_cast<off_t>(size)) != 0 && errno != EOPNOTSUPP)
    return system_error(path_of(name), fmt::format("take room for {} bytes", size));
  return made;
}

PrivateFolder::NewFile::~NewFile() {
  if (file_ && !temporary_.empty()) folder_->remove(temporary_);
}

Result<void> PrivateFolder::NewFile::write(std::span<const std::byte> bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error(folder_->path_of(temporary_), "write");
    bytes = bytes.subspan(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return {};
}

Result<void> PrivateFolder::NewFile::commit(const std::string& name) {
  if (::fsync(file_.get()) != 0) return system_error(folder_->path_of(temporary_), "save");
  const int folder = folder_->folder_.get();
  if (::renameat(folder, temporary_.c_str(), folder, name.c_str()) != 0)
    return system_error(folder_->path_of(name), "name");
  temporary_.clear();
  ::fsync(folder);  // the name; if it is lost, the file is written again some day
  return {};
}

}  // namespace octavo
