// How rows of the option table (cli/options.cc) are written.
#pragma once

#include <limits>

#include "cli/options.h"

namespace octavo::cli::rows {

// Who takes an option.
inline constexpr uint32_t G = bit(Command::generate), C = bit(Command::chat),
                          T = bit(Command::tokenize), I = bit(Command::inspect),
                          E = bit(Command::estimate), P = bit(Command::perplexity),
                          K = bit(Command::bench_compare), L = bit(Command::bench_latency),
                          U = bit(Command::bench_throughput), S = bit(Command::simulate),
                          X = bit(Command::serve), V = bit(Command::bench_serve),
                          D = bit(Command::bench_diff), Q = bit(Command::quantize),
                          A = bit(Command::embed), Y = bit(Command::bench_speculative),
                          N = bit(Command::tune_early_exit), B = K | L | U | S | Y, M = K | U | S;

inline constexpr double kMaxInt = std::numeric_limits<int32_t>::max();
inline constexpr double kMaxBytes = 1e15;
inline constexpr double kMaxDouble = std::numeric_limits<double>::max();

// Headings.
inline constexpr std::string_view kInput = "Input", kSampling = "Sampling",
                                  kEnd = "End of the answer", kShown = "What is printed",
                                  kEngine = "Engine", kMemory = "Memory of the engine",
                                  kScheduling = "Many at once", kMeasure = "Measurement",
                                  kServer = "The server", kLoad = "Load", kRequests = "Requests",
                                  kSettings = "Settings";

constexpr OptionSpec flag(std::string_view name, std::string_view help, uint32_t commands,
                          std::string_view group, std::string_view default_text = "off") {
  OptionSpec spec{name, OptionKind::flag, "", default_text, help};
  spec.commands = commands;
  spec.group = group;
  return spec;
}

constexpr OptionSpec number(OptionKind kind, std::string_view name, double lowest, double highest,
                            std::string_view default_text, std::string_view help, uint32_t commands,
                            std::string_view group) {
  OptionSpec spec{name, kind, "N", default_text, help, lowest, highest};
  spec.commands = commands;
  spec.group = group;
  return spec;
}

constexpr OptionSpec integer(std::string_view name, double lowest, double highest,
                             std::string_view default_text, std::string_view help,
                             uint32_t commands, std::string_view group) {
  return number(OptionKind::integer, name, lowest, highest, default_text, help, commands, group);
}

constexpr OptionSpec real(std::string_view name, double lowest, double highest,
                          std::string_view default_text, std::string_view help, uint32_t commands,
                          std::string_view group) {
  OptionSpec spec =
      number(OptionKind::number, name, lowest, highest, default_text, help, commands, group);
  spec.metavar = "X";
  return spec;
}

constexpr OptionSpec text(std::string_view name, std::string_view metavar, std::string_view help,
                          uint32_t commands, std::string_view group,
                          std::string_view default_text = "") {
  OptionSpec spec{name, OptionKind::text, metavar, default_text, help};
  spec.commands = commands;
  spec.group = group;
  return spec;
}

constexpr OptionSpec choice(std::string_view name, std::span<const std::string_view> choices,
                            std::string_view metavar, std::string_view default_text,
                            std::string_view help, uint32_t commands, std::string_view group) {
  OptionSpec spec{name, OptionKind::choice, metavar, default_text, help};
  spec.choices = choices;
  spec.commands = commands;
  spec.group = group;
  return spec;
}

constexpr OptionSpec list(OptionKind kind, std::string_view name, std::string_view metavar,
                          double lowest, std::string_view default_text, std::string_view help,
                          uint32_t commands, std::string_view group) {
  OptionSpec spec{name, kind, metavar, default_text, help, lowest, kMaxInt};
  spec.commands = commands;
  spec.group = group;
  return spec;
}

constexpr OptionSpec shown_default(OptionSpec spec, std::string_view text) {
  spec.default_shown = text;
  return spec;
}
constexpr OptionSpec repeatable(OptionSpec spec) {
  spec.repeatable = true;
  return spec;
}
constexpr OptionSpec above_lowest(OptionSpec spec) {
  spec.above_lowest = true;
  return spec;
}
// For what belongs to one request and would surprise if it came from the environment.
constexpr OptionSpec no_variable(OptionSpec spec) {
  spec.has_variable = false;
  return spec;
}
constexpr OptionSpec words(OptionSpec spec) {
  spec.takes_words = true;
  spec.repeatable = true;
  return spec;
}
constexpr OptionSpec or_word(OptionSpec spec, std::string_view word_for_zero) {
  spec.word_for_zero = word_for_zero;
  return spec;
}
// Of integers that count tokens or bytes.
constexpr OptionSpec count(OptionSpec spec) {
  spec.has_units = true;
  return spec;
}
// For what protects the server, or decides where it listens: a variable that is there and empty is
// a mistake, most likely of a script.
constexpr OptionSpec not_empty(OptionSpec spec) {
  spec.refuses_empty = true;
  return spec;
}
constexpr OptionSpec of_kind(OptionSpec spec, OptionKind kind) {
  spec.kind = kind;
  return spec;
}

}  // namespace octavo::cli::rows
