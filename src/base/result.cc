#include "base/result.h"

#include <array>

namespace octavo {
namespace {

struct Row {
  ErrorCode code;
  std::string_view name;
  int exit_code;
};

// 1 is left to the C++ runtime and 2 to bad usage; 130 is what a shell reports for Ctrl-C.
constexpr std::array kRows = {
    Row{ErrorCode::invalid_argument, "invalid_argument", 2},
    Row{ErrorCode::not_found, "not_found", 3},
    Row{ErrorCode::io_error, "io_error", 4},
    Row{ErrorCode::corrupt_file, "corrupt_file", 5},
    Row{ErrorCode::unsupported, "unsupported", 6},
    Row{ErrorCode::context_overflow, "context_overflow", 7},
    Row{ErrorCode::resource_exhausted, "resource_exhausted", 8},
    Row{ErrorCode::template_error, "template_error", 9},
    Row{ErrorCode::numeric_error, "numeric_error", 10},
    Row{ErrorCode::cancelled, "cancelled", 130},
};

const Row& row(ErrorCode code) { return kRows[static_cast<size_t>(code)]; }

}  // namespace

std::string_view error_name(ErrorCode code) { return row(code).name; }
int exit_code(ErrorCode code) { return row(code).exit_code; }

}  // namespace octavo
