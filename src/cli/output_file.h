// A file that is written whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace octavo::cli {

// Before the work whose result goes there. Errors: io_error, if `path` is a folder or in none.
Result<void> check_can_write(const std::string& path);

// Replaces the file at `path` in one go: whoever reads it sees the old content or the new. Errors:
// io_error, naming the path.
Result<void> write_output_file(const std::string& path, std::string_view content);

}  // namespace octavo::cli
