// Settings from a TOML file: keys at its top level are named as flags are, with _ or -.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/option_table.h"

namespace octavo::cli {

struct ConfigEntry {
  const OptionSpec* spec;
  std::string given_as;            // "FILE:3: top_p", for messages
  std::vector<std::string> texts;  // for parse_option; several only if the option is repeatable
};

// Of a file's text; `file` is its name in messages. `specs` are the options there are. Errors:
// invalid_argument, naming file and line: no TOML, a key that is no option or is there twice, a
// value of another type than the option's.
Result<std::vector<ConfigEntry>> parse_config(std::string_view text, const std::string& file,
                                              const std::vector<const OptionSpec*>& specs);

// Errors: also those of reading the file.
Result<std::vector<ConfigEntry>> read_config_file(const std::string& path,
                                                  const std::vector<const OptionSpec*>& specs);

}  // namespace octavo::cli
