// What commands read besides the model.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace octavo::cli {

// All of standard input, as it is. Errors: io_error; resource_exhausted beyond max_bytes;
// invalid_argument for bytes that are not UTF-8, with their offset.
Result<std::string> read_standard_input(size_t max_bytes);

// All of a file. Errors as above and not_found.
Result<std::string> read_text_file(const std::string& path, size_t max_bytes);

// The next line without its end; nothing at the end of input. Errors as above: what is over
// max_bytes is no line.
Result<std::optional<std::string>> read_line(size_t max_bytes);

}  // namespace octavo::cli
