#include "formats/gguf_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/checked.h"
#include "formats/quote.h"

namespace octavo {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kVersion = 3;
constexpr std::string_view kPartSuffix = ".part";

template <class T>
void put(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_text(std::string& out, std::string_view text) {
  put<uint64_t>(out, text.size());
  out.append(text);
}

void put_type(std::string& out, GgufType type) { put(out, static_cast<uint32_t>(type)); }

std::string typed(GgufType type) {
  std::string out;
  put_type(out, type);
  return out;
}

std::string typed_array(GgufType element, size_t count) {
  std::string out = typed(GgufType::array);
  put_type(out, element);
  put<uint64_t>(out, count);
  return out;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

uint64_t aligned(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

std::string tensor_table(const std::vector<GgufTensorRow>& tensors, uint64_t alignment) {
  std::string out;
  uint64_t offset = 0;
  for (const GgufTensorRow& tensor : tensors) {
    put_text(out, tensor.name);
    put(out, static_cast<uint32_t>(tensor.rank));
    for (int i = 0; i < tensor.rank; ++i)
      put<uint64_t>(out, static_cast<uint64_t>(tensor.shape[i]));
    put(out, gguf_type_id(tensor.type));
    put(out, offset);
    offset = aligned(offset + tensor.bytes(), alignment);
  }
  return out;
}

std::string tables(const GgufPairs& pairs, const std::vector<GgufTensorRow>& tensors,
                   uint64_t alignment) {
  std::string out;
  put(out, kMagic);
  put(out, kVersion);
  put<uint64_t>(out, tensors.size());
  put<uint64_t>(out, pairs.size());
  out += pairs.encoded() + tensor_table(tensors, alignment);
  out.resize(aligned(out.size(), alignment));
  return out;
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string part_prefix_of(const std::string& path) {
  return fmt::format(".{}.", std::filesystem::path(path).filename().string());
}

std::string part_path_of(const std::string& path) {
  return fmt::format("{}/{}{}{}", folder_of(path), part_prefix_of(path), ::getpid(), kPartSuffix);
}

bool is_part_of(const std::string& path, std::string_view name) {
  const std::string prefix = part_prefix_of(path);
  if (!name.starts_with(prefix) || !name.ends_with(kPartSuffix)) return false;
  name.remove_prefix(prefix.size());
  if (name.size() <= kPartSuffix.size()) return false;
  name.remove_suffix(kPartSuffix.size());
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whoever writes a part has it locked, and a kill gives the lock back.
bool lock(int descriptor) { return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0; }

// What a run that was killed left of the same file.
void remove_stale_parts(const std::string& path) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_of(path), error), end; !error && it != end;
       it.increment(error)) {
    if (!is_part_of(path, it->path().filename().string())) continue;
    const FileDescriptor file(
        ::open(it->path().c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file && lock(file.get())) ::unlink(it->path().c_str());
  }
}

// A new file, locked. Another run may have taken it for a stale one before it was.
FileDescriptor open_part(const std::string& path) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    FileDescriptor file(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    struct stat facts {};
    if (!file || !lock(file.get()) || (::fstat(file.get(), &facts) == 0 && facts.st_nlink > 0))
      return file;
  }
  return {};
}

tl::unexpected<Error> exists_error(const std::string& path) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("{} is there already; name another file, or replace it with --overwrite",
                          quote(path)));
}

tl::unexpected<Error> no_room(const std::string& path, const std::string& detail) {
  return fail(ErrorCode::resource_exhausted,
              fmt::format("{} cannot be written: the disk has no room for it ({}); make room or "
                          "name a file on another disk",
                          quote(path), detail));
}

Result<void> check_room(const std::string& path, uint64_t needed) {
  struct statvfs room {};
  if (::statvfs(folder_of(path).c_str(), &room) != 0) return {};
  const uint64_t free = uint64_t{room.f_bavail} * room.f_frsize;
  if (needed <= free) return {};
  return no_room(path, fmt::format("{} bytes are needed and {} free", needed, free));
}

}  // namespace

// --- GgufPairs --------------------------------------------------------------------------------

void GgufPairs::copy(const GgufEntry& entry) {
  std::string stored =
      entry.type == GgufType::array ? typed_array(entry.element, entry.count) : typed(entry.type);
  stored.append(as_text(entry.value));
  pairs_.push_back({std::string(entry.key), std::move(stored)});
}

template <class T>
void GgufPairs::set_number(std::string_view key, GgufType type, T value) {
  std::string stored = typed(type);
  put(stored, value);
  set(key, std::move(stored));
}

void GgufPairs::set_u16(std::string_view key, uint16_t value) {
  set_number(key, GgufType::u16, value);
}

void GgufPairs::set_u32(std::string_view key, uint32_t value) {
  set_number(key, GgufType::u32, value);
}

void GgufPairs::set_i32(std::string_view key, int32_t value) {
  set_number(key, GgufType::i32, value);
}

void GgufPairs::set_string(std::string_view key, std::string_view value) {
  std::string stored = typed(GgufType::string);
  put_text(stored, value);
  set(key, std::move(stored));
}

void GgufPairs::set_bool(std::string_view key, bool value) {
  std::string stored = typed(GgufType::boolean);
  put(stored, static_cast<uint8_t>(value));
  set(key, std::move(stored));
}

void GgufPairs::set_i32s(std::string_view key, std::span<const int32_t> values) {
  set(key, typed_array(GgufType::i32, values.size()).append(as_text(std::as_bytes(values))));
}

void GgufPairs::set_f32s(std::string_view key, std::span<const float> values) {
  set(key, typed_array(GgufType::f32, values.size()).append(as_text(std::as_bytes(values))));
}

void GgufPairs::set_strings(std::string_view key, const StringTable& values) {
  std::string stored = typed_array(GgufType::string, values.size());
  for (size_t i = 0; i < values.size(); ++i) put_text(stored, values[i]);
  set(key, std::move(stored));
}

void GgufPairs::set(std::string_view key, std::string stored) {
  remove(key);
  pairs_.push_back({std::string(key), std::move(stored)});
}

void GgufPairs::remove(std::string_view key) {
  std::erase_if(pairs_, [&](const Pair& pair) { return pair.key == key; });
}

std::string GgufPairs::encoded() const {
  std::string out;
  for (const Pair& pair : pairs_) {
    put_text(out, pair.key);
    out += pair.stored;
  }
  return out;
}

// --- GgufFileWriter ---------------------------------------------------------------------------

Result<void> GgufFileWriter::check_place(const std::string& path, bool overwrite) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return {};  // creating it says what is wrong, if anything
  if (!S_ISREG(facts.st_mode))
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is no regular file; name one that can be written", quote(path)));
  if (!overwrite) return exists_error(path);
  return {};
}

Result<GgufFileWriter> GgufFileWriter::create(const std::string& path, bool overwrite,
                                              const GgufPairs& pairs,
                                              std::vector<GgufTensorRow> tensors,
                                              uint64_t alignment) {
  OCTAVO_CHECK_OK(check_place(path, overwrite));
  const std::string head = tables(pairs, tensors, alignment);
  uint64_t total = head.size();
  for (const GgufTensorRow& tensor : tensors) total += aligned(tensor.bytes(), alignment);
  remove_stale_parts(path);
  OCTAVO_CHECK_OK(check_room(path, total));
  const std::string part_path = part_path_of(path);
  FileDescriptor file = open_part(part_path);
  if (!file && errno == ENOENT)
    return fail(ErrorCode::not_found, fmt::format("{}: its folder is not there; make it or name "
                                                  "another",
                                                  quote(path)));
  if (!file) return system_error(path, "write");
  GgufFileWriter writer(std::move(file), path, part_path, overwrite);
  writer.alignment_ = alignment;
  writer.total_ = total;
  for (const GgufTensorRow& tensor : tensors) writer.tensor_bytes_.push_back(tensor.bytes());
  OCTAVO_CHECK_OK(writer.write(head));
  return writer;
}

GgufFileWriter::GgufFileWriter(GgufFileWriter&& other) noexcept
    : file_(std::move(other.file_)),
      path_(std::move(other.path_)),
      part_path_(std::exchange(other.part_path_, {})),
      overwrite_(other.overwrite_),
      alignment_(other.alignment_),
      total_(other.total_),
      written_(other.written_),
      tensor_bytes_(std::move(other.tensor_bytes_)),
      tensor_(other.tensor_),
      tensor_written_(other.tensor_written_) {}

GgufFileWriter::~GgufFileWriter() {
  if (!part_path_.empty()) ::unlink(part_path_.c_str());
}

tl::unexpected<Error> GgufFileWriter::write_error(int error) const {
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    return no_room(path_, std::strerror(error));
  errno = error;
  return system_error(path_, "write");
}

Result<void> GgufFileWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return write_error(errno);
    bytes.remove_prefix(static_cast<size_t>(count));
    written_ += static_cast<uint64_t>(count);
  }
  return {};
}

Result<void> GgufFileWriter::pad() {
  return write(std::string(aligned(written_, alignment_) - written_, '\0'));
}

Result<void> GgufFileWriter::append(std::span<const std::byte> bytes) {
  OCTAVO_CHECK_OK(write(as_text(bytes)));
  tensor_written_ += bytes.size();
  while (tensor_ < tensor_bytes_.size() && tensor_written_ >= tensor_bytes_[tensor_]) {
    OCTAVO_CHECK_OK(pad());
    tensor_written_ = 0;
    ++tensor_;
  }
  return {};
}

Result<void> GgufFileWriter::give_name() const {
  const auto move = [&](unsigned flags) {
    return ::renameat2(AT_FDCWD, part_path_.c_str(), AT_FDCWD, path_.c_str(), flags) == 0;
  };
  if (overwrite_ ? move(0) : move(RENAME_NOREPLACE)) return {};
  if (errno == EEXIST && !overwrite_) return exists_error(path_);
  // Not every file system can tell.
  if ((errno == EINVAL || errno == ENOSYS) && !overwrite_ && move(0)) return {};
  return system_error(path_, "write");
}

Result<void> GgufFileWriter::finish() {
  if (written_ != total_)
    return fail(ErrorCode::io_error,
                fmt::format("{}: {} of {} bytes were written", quote(path_), written_, total_));
  OCTAVO_CHECK_OK(give_name());
  part_path_.clear();
  return {};
}

}  // namespace octavo
