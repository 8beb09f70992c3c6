// Reads the command line, the environment and the file of --config by the option table. Everything
// that can be wrong with a flag is found here, before anything else is opened.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "cli/option_values.h"
#include "cli/options.h"

namespace octavo::cli {

struct Invocation {
  const CommandSpec* command;
  std::vector<std::string> positionals;  // as many as the command has
  OptionValues options;
  std::vector<std::string> warnings;  // what was set and does not count, a sentence each
};

struct HelpRequest {
  const CommandSpec* command;  // nullptr: of all
};
struct VersionRequest {};

using CommandLine = std::variant<Invocation, HelpRequest, VersionRequest>;

// The value of an environment variable; nothing if it is not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// `arguments` are those after the program's name. Flags may stand anywhere after the command; their
// value follows, or is joined by "="; "--" ends them. A flag beats the environment, which beats
// the file; an empty variable counts as not set, and so does one of a port that holds what
// Kubernetes puts there (warned of). Errors: invalid_argument, naming flag, value and
// what is allowed; those of reading the file.
Result<CommandLine> parse_command_line(std::span<const std::string> arguments,
                                       const Environment& environment);

}  // namespace octavo::cli
