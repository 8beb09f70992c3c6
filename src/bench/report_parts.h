// The sections of a report page. All text of the result is escaped.
#pragma once

#include <string>
#include <vector>

#include "bench/compare_runs.h"
#include "bench/result.h"

namespace octavo {

using ComparisonRows = std::vector<ComparisonRow>;

// What the result says: sentences, and plots of the headline.
std::string answer_section(const BenchResult& result, const ComparisonRows& rows);

// The figures: few runs beside each other, many below each other with the rest to fold out.
std::string figures_section(const BenchResult& result, const ComparisonRows& rows);
std::string failures_section(const BenchResult& result);
// What the runs differ in, and below it what they have in common.
std::string settings_section(const BenchResult& result);

// Throughput against latency, distributions, what happened over time; those of which something was
// measured.
std::string all_plots(const BenchResult& result);
std::string blocks_section(const BenchResult& result);

// A name with the colour of its run.
std::string run_key(size_t index, const std::string& name);
// " good", " bad" or nothing: only for what differs beyond noise.
std::string_view verdict(Better better, const std::optional<Change>& change);

}  // namespace octavo
