// Text from files, made safe for messages and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace octavo {

// Bytes outside printable ASCII, quotes and backslashes become \xNN; what is longer than max_bytes
// is cut and followed by "...". No text can act on a terminal, break a line or hide in it.
std::string escape(std::string_view text, size_t max_bytes = std::string_view::npos);

// 'text' in single quotes, the same inside.
std::string quote(std::string_view text, size_t max_bytes = 80);

}  // namespace octavo
