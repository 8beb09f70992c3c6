// The commands of `octavo` and the one table of their options.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/option_table.h"

namespace octavo::cli {

enum class Command : uint8_t {
  generate,
  chat,
  tokenize,
  inspect,
  estimate,
  perplexity,
  bench_compare,
  serve,
  bench_latency,
  bench_serve,
  bench_diff,
  bench_throughput,
  bench_speculative,
  simulate,
  pull,
  quantize,
  embed,
  tune_early_exit,
  help_markdown
};

constexpr uint32_t bit(Command command) { return 1u << static_cast<uint32_t>(command); }

struct Positional {
  std::string_view metavar;  // "MODEL"; in lower case: the word itself is to be written
  std::string_view help;
  bool optional = false;  // may be left out; then so are those after it
};

struct CommandSpec {
  Command command;
  std::string_view name;  // one word, or two: "bench latency"
  std::span<const Positional> positionals;
  std::string_view summary;
  std::string_view details;  // paragraphs for --help and the docs page; may be empty
  bool hidden = false;
};

std::span<const CommandSpec> commands();
std::span<const OptionSpec> options();

// Of one command, in the order of the table.
std::vector<const OptionSpec*> options_of(Command command);

inline constexpr double kDefaultTemperature =
    0.7;  // of generate and chat, for a model whose own is not known
inline constexpr double kDefaultTopP = 0.95;

}  // namespace octavo::cli
