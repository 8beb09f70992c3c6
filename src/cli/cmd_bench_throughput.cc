#include "bench/comparison.h"
#include "cli/bench_output.h"
#include "cli/commands.h"

namespace octavo::cli {

Result<void> run_bench_throughput(const Invocation& invocation, Terminal& terminal) {
  OCTAVO_TRY(const ComparisonOptions options, read_comparison_options(invocation, terminal));
  OCTAVO_TRY(BenchResult result, compare(kThroughput, options));
  return show_result(std::move(result), invocation, terminal);
}

}  // namespace octavo::cli
