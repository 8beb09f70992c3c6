#include "cli/options.h"

#include <algorithm>
#include <array>

#include "cli/option_rows_bench.h"
#include "cli/option_rows_engine.h"
#include "cli/option_rows_generation.h"
#include "cli/option_rows_load.h"
#include "cli/option_rows_results.h"
#include "cli/option_rows_server.h"

namespace octavo::cli {
namespace {

template <size_t... Sizes>
constexpr auto joined(const std::array<OptionSpec, Sizes>&... parts) {
  std::array<OptionSpec, (Sizes + ...)> all = {};
  auto at = all.begin();
  ((at = std::copy(parts.begin(), parts.end(), at)), ...);
  return all;
}

// The one table, in the order of --help.
constexpr auto kOptions = joined(rows::kGenerationRows, rows::kEngineRows, rows::kBenchRows,
                                 rows::kServerRows, rows::kLoadRows, rows::kResultRows);

}  // namespace

std::span<const OptionSpec> options() { return kOptions; }

std::vector<const OptionSpec*> options_of(Command command) {
  std::vector<const OptionSpec*> found;
  for (const OptionSpec& spec : kOptions)
    if (spec.commands & bit(command)) found.push_back(&spec);
  return found;
}

}  // namespace octavo::cli
