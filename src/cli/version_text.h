// What octavo --version prints.
#pragma once

#include <string>

namespace octavo::cli {

// Version, commit, compiler, build type, and which instruction set runs and why not a better one.
// forced_isa: the value of OCTAVO_ISA, or nothing.
std::string version_text(const std::string& forced_isa);

}  // namespace octavo::cli
