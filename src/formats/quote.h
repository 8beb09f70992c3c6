// Text from files, made safe for messages and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace octavo {

// 'text' in single quotes. Bytes outside printable ASCII, quotes and backslashes become \xNN; what
// is longer than max_bytes is cut and followed by "...".
std::string quote(std::string_view text, size_t max_bytes = 80);

}  // namespace octavo
