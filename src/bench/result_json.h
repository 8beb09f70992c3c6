// Results as files, to be kept beside a machine's name and compared later.
//
// An object with "schema": "octavo-bench-1", the fields of BenchResult, and for each run its
// requests, its steps and block map by column, and "figures" (bench/figures.h), which are for
// readers, as is "answer" (bench/answer.h): they are computed anew when a file is read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "bench/result.h"

namespace octavo {

// Times are rounded to microseconds.
nlohmann::ordered_json to_json(const BenchResult& result);

// Of one run: name to number, or null where there is none.
nlohmann::ordered_json figures_json(const RunResult& run, std::optional<double> cost_per_hour = {});

// Errors, naming the field by its path: corrupt_file for what is no such result, unknown fields
// included; unsupported for another schema.
Result<BenchResult> parse_result(std::string_view text, const std::string& name);

// Errors: those of FileMap::open(); resource_exhausted for more than 512 MiB; as above.
Result<BenchResult> read_result(const std::string& path);

}  // namespace octavo
