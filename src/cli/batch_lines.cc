#include "cli/batch_lines.h"

#include <sys/stat.h>

#include <utility>

#include "base/hash.h"

namespace octavo::cli {
namespace {

bool is_blank(const ScannedLine& line) {
  return !line.too_long && line.text.find_first_not_of(" \t\r") == std::string::npos;
}

}  // namespace

BatchLines::BatchLines(LineScanner input, std::optional<ResultFile> output, uint64_t settings,
                       Terminal& terminal)
    : input_(std::move(input)),
      output_(std::move(output)),
      settings_(settings),
      terminal_(terminal) {}

Result<const ScannedLine*> BatchLines::peek(size_t ahead) {
  while (pending_.size() <= ahead) {
    OCTAVO_TRY(std::optional<ScannedLine> line, scan({}));
    if (!line) return nullptr;
    pending_.push_back(std::move(*line));
  }
  return &pending_[ahead];
}

Result<void> BatchLines::resume(const ResultFormat& format) {
  if (!output_) return {};
  std::optional<ScannedLine> last;
  OCTAVO_TRY(const ResumedResults found,
             output_->resume(format, [&]() -> Result<std::optional<ResultHead>> {
               OCTAVO_TRY(last, next());
               return last ? std::optional(head_of(*last)) : std::nullopt;
             }));
  if (found.unfinished && last) pending_.push_front(std::move(*last));
  figures_.done = found.done;
  figures_.failed = found.failed;
  figures_.first_error = found.first_error;
  figures_.first_failed_line = found.first_failed_line;
  return {};
}

Result<std::optional<ScannedLine>> BatchLines::next(std::stop_token stop) {
  if (pending_.empty()) return scan(stop);
  std::optional<ScannedLine> line = std::move(pending_.front());
  pending_.pop_front();
  return line;
}

Result<std::optional<ScannedLine>> BatchLines::scan(const std::stop_token& stop) {
  for (;;) {
    OCTAVO_TRY(std::optional<ScannedLine> line, input_.next(stop));
    if (!line || !is_blank(*line)) return line;
  }
}

ResultHead BatchLines::head_of(const ScannedLine& line) const {
  Hasher hasher;
  hasher.add_value(settings_);
  hasher.add_value(line.hash);
  return {line.number, hasher.result64()};
}

Result<void> BatchLines::write(const ResultHead& head, std::string_view text, int64_t tokens,
                               std::optional<ErrorCode> error) {
  if (output_) {
    OCTAVO_CHECK_OK(output_->append(text));
  } else {
    terminal_.write(text);
  }
  ++figures_.done;
  ++figures_.computed;
  figures_.tokens += tokens;
  if (!error || figures_.failed++ > 0) return {};
  figures_.first_error = error;
  figures_.first_failed_line = head.line;
  return {};
}

std::optional<int64_t> count_lines(const std::string& path) {
  constexpr size_t kEnoughToSee = 4096;
  if (path == "-") return std::nullopt;  // even of a file, what is read here would be gone
  // A named pipe must not be opened a second time: who wrote into it may be gone.
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return std::nullopt;
  auto scanner = LineScanner::open(path, kEnoughToSee);
  if (!scanner) return std::nullopt;
  int64_t count = 0;
  for (;;) {
    const auto line = scanner->next();
    if (!line) return std::nullopt;
    if (!*line) return count;
    count += !is_blank(**line);
  }
}

}  // namespace octavo::cli
