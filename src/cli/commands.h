// The commands, one file each. The command line has been checked; each opens what it needs, prints
// and returns.
#pragma once

#include "base/result.h"
#include "cli/command_line.h"
#include "cli/terminal.h"

namespace octavo::cli {

Result<void> run_generate(const Invocation& invocation, Terminal& terminal);
Result<void> run_generate_batch(const Invocation& invocation, Terminal& terminal);  // --input
Result<void> run_chat(const Invocation& invocation, Terminal& terminal);
Result<void> run_tokenize(const Invocation& invocation, Terminal& terminal);
Result<void> run_inspect(const Invocation& invocation, Terminal& terminal);
Result<void> run_estimate(const Invocation& invocation, Terminal& terminal);
Result<void> run_perplexity(const Invocation& invocation, Terminal& terminal);
Result<void> run_serve(const Invocation& invocation, Terminal& terminal);
Result<void> run_bench_compare(const Invocation& invocation, Terminal& terminal);
Result<void> run_bench_throughput(const Invocation& invocation, Terminal& terminal);
Result<void> run_bench_latency(const Invocation& invocation, Terminal& terminal);
Result<void> run_bench_speculative(const Invocation& invocation, Terminal& terminal);
Result<void> run_bench_serve(const Invocation& invocation, Terminal& terminal);
Result<void> run_bench_diff(const Invocation& invocation, Terminal& terminal);
Result<void> run_simulate(const Invocation& invocation, Terminal& terminal);
Result<void> run_embed(const Invocation& invocation, Terminal& terminal);
Result<void> run_quantize(const Invocation& invocation, Terminal& terminal);
Result<void> run_tune_early_exit(const Invocation& invocation, Terminal& terminal);
Result<void> run_pull(const Invocation& invocation, Terminal& terminal);

// The whole program: returns its exit code. An error becomes one line on standard error.
int run(std::span<const std::string> arguments, const Environment& environment, Terminal& terminal);

}  // namespace octavo::cli
