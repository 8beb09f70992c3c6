// What was taken from a request although it has no effect: sentences, each of which names its
// field. Answers carry them in a header, whole and streamed alike, and the log has them in the
// request's line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace octavo {

using ApiWarnings = std::vector<std::string>;

inline constexpr std::string_view kWarningsHeader = "X-Octavo-Warnings";

// A list of strings as JSON in ASCII on one line. Proxies take headers of a few kilobytes only, so
// what is beyond that is counted and not told. Without warnings there is no header.
void add_warnings_header(const ApiWarnings& warnings, http::Headers& headers);

}  // namespace octavo
