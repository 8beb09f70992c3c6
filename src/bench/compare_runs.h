// The figures of several runs beside each other.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/figures.h"
#include "bench/result.h"
#include "bench/spread.h"

namespace octavo {

// Whether a sweep has a line for each of several techniques.
bool has_lines(const BenchResult& result);

// The run that another is compared with, by their index: the first of its group, or of all.
size_t baseline_of(const BenchResult& result, size_t run);

// One run of several rounds, with the figures of all and the requests of the one with the median
// throughput. REQUIRES: not empty.
RunResult merge_rounds(std::vector<RunResult> rounds);

// A table of all runs: those figures that are shown in tables and are not zero in all runs; of what
// was answered, and well, zero says something.
struct ComparisonRow {
  Figure figure;                               // of the first run
  std::vector<std::optional<double>> values;   // of each run; of several rounds the median
  std::vector<std::optional<Change>> changes;  // from the baseline; nothing where there is none
};
std::vector<ComparisonRow> compare_runs(const BenchResult& result);

// Those that matter most, for tables with a row for each run: the headline first.
std::vector<const ComparisonRow*> main_rows(const BenchResult& result,
                                            const std::vector<ComparisonRow>& rows);

// The row of this name; nullptr if there is none.
const ComparisonRow* find_row(const std::vector<ComparisonRow>& rows, std::string_view name);

// Of any two of its runs, by their index; nothing where one has no such figure.
std::optional<Change> change_between_runs(const BenchResult& result, size_t base, size_t other,
                                          const std::string& name);

// The value of a figure in each round of a run; just one where it was made once.
std::vector<double> round_values(const RunResult& run, const std::string& name);

}  // namespace octavo
