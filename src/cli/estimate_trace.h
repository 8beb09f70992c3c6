// `octavo estimate MODEL --trace FILE`: limits that suit recorded requests.
#pragma once

#include "base/result.h"
#include "cli/estimate_subject.h"
#include "cli/option_values.h"
#include "cli/terminal.h"

namespace octavo::cli {

// invalid_argument if --trace is given together with lengths of its own.
Result<void> check_trace_options(const OptionValues& options);

// Errors: those of read_trace() and size_for(); invalid_argument without --memory where the memory
// that is left for the KV cache is not known.
Result<void> estimate_trace(const EstimateSubject& subject, const OptionValues& options,
                            Terminal& terminal);

}  // namespace octavo::cli
