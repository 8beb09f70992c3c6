// A command as it would be typed again.
#pragma once

#include <string>

#include "cli/command_line.h"

namespace octavo::cli {

// With all that was given by flag, environment or file, for a POSIX shell; without the key.
std::string command_text(const Invocation& invocation);

}  // namespace octavo::cli
