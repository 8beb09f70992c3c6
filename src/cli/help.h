// --help and the docs page, written from the tables of cli/options.h.
#pragma once

#include <string>

#include "cli/options.h"

namespace octavo::cli {

std::string first_steps();                          // octavo, without a command
std::string help_text();                            // octavo --help
std::string help_text(const CommandSpec& command);  // octavo COMMAND --help
std::string help_markdown();                        // docs/flags.md

}  // namespace octavo::cli
