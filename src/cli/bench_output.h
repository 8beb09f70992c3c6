// How the commands that measure show and keep what they found.
#pragma once

#include <string>

#include "base/result.h"
#include "bench/comparison.h"
#include "bench/result.h"
#include "cli/commands.h"

namespace octavo::cli {

// The requests that --synthetic or --trace ask for, and how often and how densely they run.
Result<ComparisonOptions> read_comparison_options(const Invocation& invocation, Terminal& terminal);

// Errors: io_error if what --output or --html name cannot be written, found before minutes of work.
Result<void> check_outputs(const OptionValues& options);

// Fills in who measured what; prints the table, or with --json the result; writes --output and
// --html. text: in place of that table, if it is not empty.
Result<void> show_result(BenchResult result, const Invocation& invocation, Terminal& terminal,
                         const std::string& text = {});

// The same without filling in.
Result<void> write_result(const BenchResult& result, const Invocation& invocation,
                          Terminal& terminal, const std::string& text = {});

}  // namespace octavo::cli
