#include "cli/message_reader.h"

#include <fmt/format.h>

namespace octavo::cli {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

}  // namespace

Result<std::optional<std::string>> read_message(const LineSource& lines, size_t max_bytes) {
  OCTAVO_TRY(std::optional<std::string> line, lines("> "));
  if (!line || !line->starts_with(kQuotes)) return line;
  std::string text = line->substr(kQuotes.size());
  while (!text.ends_with(kQuotes)) {
    OCTAVO_TRY(line, lines("... "));
    if (!line) return text;
    if (!text.empty()) text += '\n';  // the first line may have nothing but the quotes
    text += *line;
    if (text.size() > max_bytes)
      return fail(
          ErrorCode::resource_exhausted,
          fmt::format("a message has more than {} bytes, the most that is taken", max_bytes));
  }
  text.resize(text.size() - kQuotes.size());
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace octavo::cli
