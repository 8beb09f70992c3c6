// Plain text tables and human units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace octavo::cli {

// Columns as wide as their widest cell, two spaces between them. A character of `alignment` for
// each column: 'l' or 'r'. REQUIRES: rows are no longer than alignment.
std::string format_table(const std::vector<std::vector<std::string>>& rows,
                         std::string_view alignment);

// "0.4375 GiB", "56 KiB", "12 bytes": four digits.
std::string human_bytes(int64_t bytes);

}  // namespace octavo::cli
