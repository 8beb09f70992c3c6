// Text inside HTML and SVG.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// For contents and for attributes in quotes. Bytes that are no UTF-8 and control characters become
// U+FFFD, so that the page stays well formed whatever a model or a trace is called.
std::string escape_markup(std::string_view text);

}  // namespace octavo
