#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/perplexity.h"
#include "cli/sampling_options.h"

namespace octavo::cli {
namespace {

Json to_json(const PerplexityScores& scores) {
  return {{"perplexity", scores.perplexity()},
          {"nll", scores.nll},
          {"predicted_tokens", scores.predicted_tokens},
          {"num_windows", scores.window_nll.size()},
          {"window_nll", scores.window_nll},
          {"window_predicted_tokens", scores.window_tokens}};
}

}  // namespace

Result<void> run_perplexity(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  EngineOptions engine_options = read_engine_options(options);
  engine_options.model = invocation.positionals[0];
  OCTAVO_TRY(const PerplexityScores scores,
             measure_perplexity(std::move(engine_options), invocation.positionals[1],
                                options.integer("context"), terminal));
  terminal.write(options.flag("json")
                     ? dump_line(to_json(scores))
                     : fmt::format("perplexity {:.4f} over {} tokens in {} windows\n",
                                   scores.perplexity(), scores.predicted_tokens,
                                   scores.window_nll.size()));
  return {};
}

}  // namespace octavo::cli
