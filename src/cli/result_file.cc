#include "cli/result_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cli/line_scanner.h"
#include "formats/quote.h"

namespace octavo::cli {
namespace {

constexpr size_t kHeadBytes =
    256;  // of a result line; enough for its head and the name of an error
constexpr std::string_view kErrorBegins = ",\"error\":{\"code\":\"";

// Of a line that begins with its head. Nothing: it is no failed one.
std::optional<ErrorCode> error_of(std::string_view after_head) {
  if (!after_head.starts_with(kErrorBegins)) return std::nullopt;
  const std::string_view rest = after_head.substr(kErrorBegins.size());
  const std::string_view name = rest.substr(0, rest.find('"'));
  for (int code = 0; code <= static_cast<int>(ErrorCode::cancelled); ++code)
    if (error_name(ErrorCode{code}) == name) return ErrorCode{code};
  return std::nullopt;
}

std::string head_text(const ResultHead& head) {
  return fmt::format("{{\"line\":{},\"input_hash\":\"{:016x}\"", head.line, head.input_hash);
}

bool lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK; }

}  // namespace

const ResultFormat kOwnFormat = {&head_text, &error_of};

Result<ResultFile> ResultFile::open(const std::string& path, bool overwrite) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  struct stat facts = {};
  if (!file || ::fstat(file.get(), &facts) != 0) return system_error(path, "write");
  const bool is_regular = S_ISREG(facts.st_mode);
  if (is_regular && !lock(file.get()))
    return fail(
        ErrorCode::invalid_argument,
        fmt::format("--output {} is being written by another run; wait for its end", quote(path)));
  if (is_regular && overwrite && ::ftruncate(file.get(), 0) != 0)
    return system_error(path, "empty");
  return ResultFile(std::move(file), path, is_regular);
}

tl::unexpected<Error> ResultFile::foreign(int64_t line) const {
  return fail(ErrorCode::invalid_argument,
              fmt::format("--output {} holds something else in its line {} than a result of this "
                          "input with this model and these flags; name another file, or drop what "
                          "is there with --overwrite",
                          quote(path_), line));
}

Result<ResumedResults> ResultFile::resume(
    const ResultFormat& format,
    const std::function<Result<std::optional<ResultHead>>()>& next_input) {
  ResumedResults results;
  if (!is_regular_) return results;
  FileDescriptor reading(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  if (!reading || ::lseek(reading.get(), 0, SEEK_SET) < 0) return system_error(path_, "read");
  LineScanner scanner(std::move(reading), path_, kHeadBytes);
  for (;;) {
    OCTAVO_TRY(const std::optional<ScannedLine> line, scanner.next());
    if (!line) break;
    OCTAVO_TRY(const std::optional<ResultHead> input, next_input());
    if (!input) return foreign(line->number);
    const std::string head = format.head(*input);
    const std::string_view text = line->text;
    if (text.substr(0, head.size()) != head.substr(0, line->complete ? head.size() : text.size()))
      return foreign(line->number);
    if (!line->complete) {
      results.unfinished = true;
      if (::ftruncate(file_.get(), line->offset) != 0) return system_error(path_, "shorten");
      size_ = line->offset;
      return results;
    }
    ++results.done;
    const auto error = format.error_of(text.substr(head.size()));
    if (error && results.failed++ == 0) {
      results.first_error = error;
      results.first_failed_line = input->line;
    }
  }
  const off_t end = ::lseek(file_.get(), 0, SEEK_END);
  if (end < 0) return system_error(path_, "read");
  size_ = end;
  return results;
}

Result<void> ResultFile::append(std::string_view line) {
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      auto error = system_error(path_, "write");
      // If this fails too, the next run drops the half line.
      if (is_regular_ && ::ftruncate(file_.get(), size_) != 0) return error;
      return error;
    }
    rest.remove_prefix(static_cast<size_t>(written));
  }
  size_ += static_cast<int64_t>(line.size());
  return {};
}

}  // namespace octavo::cli
