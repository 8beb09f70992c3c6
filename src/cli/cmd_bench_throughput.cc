#include "bench/comparison.h"
#include "cli/bench_output.h"
#include "cli/commands.h"

namespace octavo::cli {

Result<void> run_bench_throughput(const Invocation& invocation, Terminal& terminal) {
  OCTAVO_TRY(ComparisonOptions options, read_comparison_options(invocation, terminal));
  if (const auto levels = invocation.options.find<std::vector<int64_t>>("max_concurrency"))
    options.max_concurrency.assign(levels->begin(), levels->end());
  OCTAVO_TRY(BenchResult result, compare(kThroughput, options));
  return show_result(std::move(result), invocation, terminal);
}

}  // namespace octavo::cli
