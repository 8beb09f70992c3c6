// A result as one HTML page that needs nothing else: no script, no file beside it, no network.
#pragma once

#include <string>

#include "bench/result.h"

namespace octavo {

// What was run, the figures of each run with their ratio to the first, plots of throughput against
// latency, of the distributions and of what happened over time, and the blocks of the KV cache
// where a run has a map of them. All text of the result is escaped.
std::string html_report(const BenchResult& result);

}  // namespace octavo
