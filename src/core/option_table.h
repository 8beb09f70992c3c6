// Options as data: a row says all that is known of one, and flags, environment variables, --help,
// defaults and the docs page follow from it. Which options there are is said by who has them
// (cli/options.cc).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/sampling_params.h"

namespace octavo {

enum class OptionKind : uint8_t {
  flag,          // on or off; --name and --no-name
  integer,       // int64_t
  number,        // double, finite
  seed,          // uint64_t, any
  text,          // any string
  choice,        // one of `choices`
  integer_list,  // 1,2,3
  logit_bias,    // ID=BIAS,ID=BIAS
};

using OptionValue = std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<int64_t>,
                                 std::vector<LogitBias>>;

struct OptionSpec {
  std::string_view name;  // "top_p": the flag is --top-p, the variable OCTAVO_TOP_P
  OptionKind kind;
  std::string_view metavar;       // what stands for the value in --help; of a flag: nothing
  std::string_view default_text;  // as it would be typed; empty: none
  std::string_view
      help;  // without a full stop; of a flag that is on by default: what --no-name does

  // Of integers (each of a list) and numbers. above_lowest: the lowest value itself is outside.
  double lowest = 0, highest = 0;
  bool above_lowest = false;
  std::span<const std::string_view> choices = {};  // of choice; if given, of integer
  std::string_view word_for_zero = {};             // of integer: "auto" stands for 0
  bool has_units = false;                          // of integers: a count that may be 8k or 4GiB
  bool refuses_empty = false;                      // of text: else an empty variable is no variable

  std::string_view default_shown = {};  // what --help says where default_text is empty
  bool repeatable = false;
  bool takes_words = false;  // of text: each argument up to the next flag is a value
  bool has_variable = true;
  uint32_t commands = 0;        // a bit for each command that takes it
  std::string_view group = {};  // its heading in --help
};

// The value of one text. `given_as` is the flag or variable of messages. invalid_argument, naming
// it, the text and what is allowed. A flag takes on, off, true, false, 1 and 0.
Result<OptionValue> parse_option(const OptionSpec& spec, std::string_view text,
                                 std::string_view given_as);

std::string allowed_values(const OptionSpec& spec);  // "0 to 1", "auto, float32"; empty: anything

std::string flag_of(std::string_view name);      // "--top-p"
std::string variable_of(std::string_view name);  // "OCTAVO_TOP_P"

// The candidate that a mistyped name probably means: few letters differ, or it begins so. Empty:
// none is close.
std::string_view nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace octavo
