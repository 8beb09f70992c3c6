#include "cli/terminal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "text/utf8.h"

namespace octavo::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::string_view kEraseLine = "\r\x1b[K";

// Returns 0 or errno.
int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

bool knows_escape_sequences() {
  const char* term = std::getenv("TERM");
  return term && *term && std::string_view(term) != "dumb";
}

double steady_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool is_c0(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
}

// U+0080 to U+009F: C2, then 80 to 9F.
bool is_c1(std::string_view text, size_t at) {
  return text[at] == '\xC2' && at + 1 < text.size() &&
         static_cast<unsigned char>(text[at + 1]) < 0xA0;
}

}  // namespace

std::string without_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool c1 = is_c1(text, i);
    if (c1 || is_c0(text[i]))
      out += kReplacement;
    else
      out += text[i];
    if (c1) ++i;
  }
  return out;
}

std::string one_line(std::string_view text) {
  std::string valid, out;
  Utf8Repair repair;
  repair.push(text, valid);
  repair.finish(valid);
  for (const char c : without_controls(valid)) {
    if (c == '\n')
      out += kReplacement;
    else
      out += c;
  }
  return out;
}

Terminal::Terminal()
    : input_is_terminal_(isatty(STDIN_FILENO)),
      output_is_terminal_(isatty(STDOUT_FILENO)),
      error_is_terminal_(isatty(STDERR_FILENO)),
      understands_escapes_(knows_escape_sequences()),
      pace_(steady_s()) {}

void Terminal::write(std::string_view text) {
  clear_progress();
  if (text.empty() || write_error_ != 0) return;
  write_error_ = output_is_terminal_ ? write_all(STDOUT_FILENO, without_controls(text))
                                     : write_all(STDOUT_FILENO, text);
}

Result<void> Terminal::status() const {
  if (write_error_ == 0 || write_error_ == EPIPE) return {};
  return fail(ErrorCode::io_error,
              fmt::format("standard output cannot be written: {}", std::strerror(write_error_)));
}

void Terminal::say(std::string_view line) {
  clear_progress();
  write_all(STDERR_FILENO, one_line(line) + "\n");
}

void Terminal::remark(std::string_view line) {
  if (error_is_terminal_ && !is_quiet_) say(line);
}

void Terminal::progress(std::string_view line) {
  if (!error_is_terminal_ || !understands_escapes_ || is_quiet_ || line == progress_) return;
  progress_ = line;
  write_all(STDERR_FILENO, fmt::format("{}{}", kEraseLine, one_line(line)));
}

void Terminal::long_progress(std::string_view line) {
  if (error_is_terminal_) return progress(line);
  if (is_quiet_ || !pace_.is_due(steady_s())) return;
  told_progress_ = true;
  say(line);
}

void Terminal::conclude(std::string_view line) {
  if ((error_is_terminal_ || told_progress_) && !is_quiet_) say(line);
}

void Terminal::clear_progress() {
  if (progress_.empty()) return;
  progress_.clear();
  write_all(STDERR_FILENO, kEraseLine);
}

}  // namespace octavo::cli
