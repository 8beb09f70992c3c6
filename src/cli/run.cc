#include <fmt/format.h>

#include <sstream>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/version_text.h"

namespace octavo::cli {
namespace {

Result<void> dispatch(const Invocation& invocation, Terminal& terminal) {
  switch (invocation.command->command) {
    case Command::generate:
      return run_generate(invocation, terminal);
    case Command::chat:
      return run_chat(invocation, terminal);
    case Command::tokenize:
      return run_tokenize(invocation, terminal);
    case Command::inspect:
      return run_inspect(invocation, terminal);
    case Command::estimate:
      return run_estimate(invocation, terminal);
    case Command::perplexity:
      return run_perplexity(invocation, terminal);
    case Command::serve:
      return run_serve(invocation, terminal);
    case Command::bench_compare:
      return run_bench_compare(invocation, terminal);
    case Command::bench_serve:
      return run_bench_serve(invocation, terminal);
    case Command::bench_diff:
      return run_bench_diff(invocation, terminal);
    case Command::bench_throughput:
      return run_bench_throughput(invocation, terminal);
    case Command::bench_latency:
      return run_bench_latency(invocation, terminal);
    case Command::bench_speculative:
      return run_bench_speculative(invocation, terminal);
    case Command::simulate:
      return run_simulate(invocation, terminal);
    case Command::pull:
      return run_pull(invocation, terminal);
    case Command::quantize:
      return run_quantize(invocation, terminal);
    case Command::embed:
      return run_embed(invocation, terminal);
    case Command::tune_early_exit:
      return run_tune_early_exit(invocation, terminal);
    case Command::help_markdown:
      break;
  }
  terminal.write(help_markdown());
  return {};
}

Result<void> run_command_line(std::span<const std::string> arguments,
                              const Environment& environment, Terminal& terminal) {
  OCTAVO_TRY(const CommandLine line, parse_command_line(arguments, environment));
  if (const auto* invocation = std::get_if<Invocation>(&line)) {
    for (const std::string& warning : invocation->warnings)
      terminal.say(fmt::format("octavo: warning: {}", warning));
    return dispatch(*invocation, terminal);
  }
  if (const auto* help = std::get_if<HelpRequest>(&line))
    terminal.write(help->command ? help_text(*help->command) : help_text());
  else
    terminal.write(version_text(environment("OCTAVO_ISA").value_or("")));
  return {};
}

}  // namespace

int run(std::span<const std::string> arguments, const Environment& environment,
        Terminal& terminal) {
  if (arguments.empty()) {
    std::istringstream lines(first_steps());
    for (std::string line; std::getline(lines, line);) terminal.say(line);
    return exit_code(ErrorCode::invalid_argument);
  }
  auto result = run_command_line(arguments, environment, terminal);
  if (result) result = terminal.status();
  if (result) return 0;
  terminal.say(fmt::format("octavo: error: {} [{}]", result.error().message,
                           error_name(result.error().code)));
  return exit_code(result.error().code);
}

}  // namespace octavo::cli
