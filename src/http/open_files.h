// Each connection takes a file descriptor, and the usual limit of them is 1024.
#pragma once

#include <cstdint>

namespace octavo::http {

// Raises the soft limit to the hard one, as far as it can; returns what it then is.
int64_t raise_open_file_limit();

}  // namespace octavo::http
