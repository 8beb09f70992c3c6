// Messages of a conversation out of lines.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace octavo::cli {

// The next line after this prompt; nothing at the end of input.
using LineSource = std::function<Result<std::optional<std::string>>(std::string_view prompt)>;

// A line, or what stands between """ and """, which may be several. Nothing at the end of input,
// which also ends an open message. Errors: those of `lines`; resource_exhausted beyond max_bytes.
Result<std::optional<std::string>> read_message(const LineSource& lines, size_t max_bytes);

}  // namespace octavo::cli
