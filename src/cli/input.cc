#include "cli/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/file_map.h"
#include "formats/quote.h"
#include "text/utf8.h"

namespace octavo::cli {
namespace {

constexpr std::string_view kStandardInput = "standard input";

tl::unexpected<Error> too_long(std::string_view what, size_t max_bytes) {
  return fail(ErrorCode::resource_exhausted,
              fmt::format("{} has more than {} bytes, the most that is taken; cut it into parts",
                          what, max_bytes));
}

Result<std::string> expect_utf8(std::string text, std::string_view what) {
  if (const auto at = find_invalid_utf8(text))
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} is not UTF-8 at byte {}; convert it first", what, *at));
  return text;
}

// Bytes read; 0 at the end.
Result<size_t> read_some(char* out, size_t size) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, out, size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR)
      return fail(ErrorCode::io_error,
                  fmt::format("{} cannot be read: {}", kStandardInput, std::strerror(errno)));
  }
}

}  // namespace

Result<std::string> read_standard_input(size_t max_bytes) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (;;) {
    OCTAVO_TRY(const size_t count, read_some(buffer.data(), buffer.size()));
    if (count == 0) return expect_utf8(std::move(text), kStandardInput);
    if (text.size() + count > max_bytes) return too_long(kStandardInput, max_bytes);
    text.append(buffer.data(), count);
  }
}

Result<std::string> read_text_file(const std::string& path, size_t max_bytes) {
  OCTAVO_TRY(const FileMap map, FileMap::open(path));
  if (map.size() > max_bytes) return too_long(quote(path), max_bytes);
  return expect_utf8(std::string(reinterpret_cast<const char*>(map.bytes().data()), map.size()),
                     quote(path));
}

Result<std::optional<std::string>> read_line(size_t max_bytes) {
  std::string line;
  for (;;) {
    // One byte at a time: what follows the line is left to whoever reads next.
    char c;
    OCTAVO_TRY(const size_t count, read_some(&c, 1));
    if (count == 0 && line.empty()) return std::optional<std::string>();
    if (count == 0 || c == '\n') break;
    if (line.size() == max_bytes) return too_long("a line", max_bytes);
    line += c;
  }
  if (line.ends_with('\r')) line.pop_back();
  OCTAVO_TRY(line, expect_utf8(std::move(line), "the line"));
  return std::optional<std::string>(std::move(line));
}

}  // namespace octavo::cli
