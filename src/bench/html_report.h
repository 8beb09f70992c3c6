// A result as one HTML page that needs nothing else: no script, no file beside it, no network.
#pragma once

#include <string>

#include "bench/result.h"

namespace octavo {

// The answer first, in sentences and a plot; then what was run, the figures of each run, plots of
// throughput against latency, of the distributions and of what happened over time, the blocks of
// the KV cache where a run has a map of them, and what the settings differ in. All text of the
// result is escaped.
std::string html_report(const BenchResult& result);

}  // namespace octavo
