// Escapes in string literals, as Python's.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace octavo::jinja {

// The text of a literal without its quotes. Unknown escapes stay as they are; \N{...} is
// unsupported, lone surrogates and numbers beyond Unicode are errors. The messages carry no place.
Result<std::string> unescape(std::string_view literal);

}  // namespace octavo::jinja
