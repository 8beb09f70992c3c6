// Which requests were fast enough.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bench/result.h"

namespace octavo {

// Words of MEASURE:MS, separated by spaces or commas: "ttft:500 tpot:50". Measures are ttft, tpot,
// itl (the largest gap of a request) and e2el. Errors: invalid_argument.
Result<std::map<std::string, double>> parse_goodput(std::string_view text);

// It was answered, and no measure is above its bound. What it has no measure of is no reason
// against it.
bool is_good(const RequestRecord& request, const std::map<std::string, double>& bounds_ms);

}  // namespace octavo
