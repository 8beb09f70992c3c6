#include "cli/line_scanner.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/hash.h"

namespace octavo::cli {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;
constexpr int kPollMs = 100;  // how long a stop may go unnoticed

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// False: `stop` came first.
bool wait_for_input(int fd, const std::stop_token& stop) {
  pollfd entry{fd, POLLIN, 0};
  while (!stop.stop_requested())
    if (::poll(&entry, 1, kPollMs) > 0) return true;
  return false;
}

}  // namespace

Result<LineScanner> LineScanner::open(const std::string& path, size_t max_bytes) {
  if (path == "-") return LineScanner({}, "standard input", max_bytes);
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return system_error(path, "open");
  return LineScanner(std::move(file), path, max_bytes);
}

LineScanner::LineScanner(FileDescriptor file, std::string name, size_t max_bytes)
    : file_(std::move(file)), name_(std::move(name)), max_bytes_(max_bytes) {}

// False: there is no more.
Result<bool> LineScanner::fill(const std::stop_token& stop) {
  buffer_.resize(kBufferBytes);
  begin_ = 0;
  for (;;) {
    const bool ready = wait_for_input(fd(), stop);
    const ssize_t count = ready ? ::read(fd(), buffer_.data(), buffer_.size()) : 0;
    if (count < 0 && errno == EINTR) continue;
    buffer_.resize(count > 0 ? static_cast<size_t>(count) : 0);
    if (count < 0) return system_error(name_, "read");
    return count > 0;
  }
}

Result<std::optional<ScannedLine>> LineScanner::next(std::stop_token stop) {
  ScannedLine line{.number = number_ + 1, .offset = offset_};
  Hasher hasher;
  for (bool any = false;; any = true) {
    if (begin_ == buffer_.size()) {
      OCTAVO_TRY(const bool filled, fill(stop));
      if (!filled && (!any || stop.stop_requested())) return std::nullopt;
      line.complete = filled;
      if (!filled) break;
    }
    const std::string_view rest = std::string_view(buffer_).substr(begin_);
    const size_t end = rest.find('\n');
    const std::string_view part = rest.substr(0, end);
    const size_t room = max_bytes_ - line.text.size();
    line.text += part.substr(0, room);
    line.too_long = line.too_long || part.size() > room;
    hasher.add(bytes_of(part));
    const size_t taken = std::min(rest.size(), part.size() + 1);
    begin_ += taken;
    offset_ += static_cast<int64_t>(taken);
    if (end != std::string_view::npos) break;
  }
  line.hash = hasher.result64();
  number_ = line.number;
  return line;
}

}  // namespace octavo::cli
