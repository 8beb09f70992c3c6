// What this binary was made from: what `octavo --version` prints. Written by CMake at build time.
#pragma once

#include <string_view>

namespace octavo {

std::string_view version();  // "0.1.0"

// Twelve digits of the git commit, followed by "+changes" if tracked files differed from it;
// "unknown" for a source tree that is not a git checkout, or where git is not installed.
std::string_view commit();

std::string_view compiler();    // "GNU 12.2.0"
std::string_view build_type();  // "Release", or with sanitizers "Debug (address,undefined)"

}  // namespace octavo
