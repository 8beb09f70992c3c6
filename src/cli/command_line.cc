#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>

#include "cli/config_file.h"
#include "formats/quote.h"
#include "text/utf8.h"

namespace octavo::cli {
namespace {

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorCode::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

bool is_flag(std::string_view argument) { return argument.size() > 1 && argument.front() == '-'; }
bool is_help(std::string_view argument) { return argument == "--help" || argument == "-h"; }

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string_view nearest = nearest_name(name, candidates);
  return nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest);
}

// Kubernetes gives every container variables about each Service of its namespace. For one named
// "octavo", OCTAVO_PORT is "tcp://10.96.0.12:8000"; for "octavo-x" it is OCTAVO_X_PORT.
bool is_address_of_service(std::string_view variable, std::string_view text) {
  constexpr std::array<std::string_view, 3> kProtocols = {"tcp://", "udp://", "sctp://"};
  return variable.ends_with("_PORT") &&
         std::any_of(kProtocols.begin(), kProtocols.end(),
                     [&](std::string_view protocol) { return text.starts_with(protocol); });
}

// A flag as written: the option it sets, and to what if that is in its name.
struct FlagMatch {
  const OptionSpec* spec;
  std::optional<bool> state;  // of OptionKind::flag
};

// The arguments of one command, read one after the other.
class Reader {
 public:
  Reader(const CommandSpec& command, std::span<const std::string> arguments)
      : invocation_{&command, {}, OptionValues(command.command), {}},
        arguments_(arguments),
        specs_(options_of(command.command)) {}

  Result<Invocation> read(const Environment& environment) {
    while (next_ < arguments_.size()) OCTAVO_CHECK_OK(read_argument(arguments_[next_++]));
    for (const OptionSpec* spec : specs_) OCTAVO_CHECK_OK(read_variable(*spec, environment));
    OCTAVO_CHECK_OK(read_file());
    OCTAVO_CHECK_OK(take_model_flag());
    OCTAVO_CHECK_OK(check_positionals());
    return std::move(invocation_);
  }

 private:
  Result<void> read_argument(const std::string& argument) {
    if (only_positionals_ || !is_flag(argument)) {
      invocation_.positionals.push_back(argument);
      return {};
    }
    if (argument == "--") {
      only_positionals_ = true;
      return {};
    }
    const size_t equals = argument.find('=');
    const std::string flag = argument.substr(0, equals);
    const std::optional<FlagMatch> match = find(flag);
    if (!match) return unknown(flag);
    std::optional<std::string> joined;
    if (equals != std::string::npos) joined = argument.substr(equals + 1);
    return match->state ? set_state(flag, *match, joined) : set_value(flag, *match->spec, joined);
  }

  Result<void> set_state(const std::string& flag, const FlagMatch& match,
                         const std::optional<std::string>& joined) {
    if (joined) return refuse("{} takes no value; {} is its opposite", flag, opposite_of(match));
    return add(flag, *match.spec, *match.state);
  }

  Result<void> set_value(const std::string& flag, const OptionSpec& spec,
                         std::optional<std::string> joined) {
    if (!joined) {
      if (next_ == arguments_.size()) return refuse("{} needs a value, {}", flag, spec.metavar);
      const std::string& value = arguments_[next_];
      // A forgotten value must not swallow the flag after it.
      if (find(value.substr(0, value.find('='))) || is_help(value))
        return refuse("{} needs a value, and {} is a flag; write {}={} if it is meant", flag, value,
                      flag, value);
      joined = value;
      ++next_;
    }
    OCTAVO_CHECK_OK(add_text(flag, spec, *joined));
    while (spec.takes_words && next_ < arguments_.size() && !is_flag(arguments_[next_]))
      OCTAVO_CHECK_OK(add_text(flag, spec, arguments_[next_++]));
    return {};
  }

  Result<void> add_text(const std::string& flag, const OptionSpec& spec, const std::string& text) {
    OCTAVO_TRY(OptionValue value, parse(spec, text, flag));
    return add(flag, spec, std::move(value));
  }

  static Result<OptionValue> parse(const OptionSpec& spec, const std::string& text,
                                   std::string_view given_as) {
    if (const auto at = find_invalid_utf8(text))
      return refuse("{} is {}, which is not UTF-8 at byte {}", given_as, quote(text), *at);
    return parse_option(spec, text, given_as);
  }

  Result<void> add(std::string_view flag, const OptionSpec& spec, OptionValue value) {
    if (!spec.repeatable && invocation_.options.is_given(spec.name))
      return refuse("{} is given twice; once is enough", flag);
    invocation_.options.add(spec, std::move(value));
    return {};
  }

  Result<void> read_variable(const OptionSpec& spec, const Environment& environment) {
    if (!spec.has_variable || invocation_.options.is_given(spec.name)) return {};
    const std::string name = variable_of(spec.name);
    const std::optional<std::string> text = environment(name);
    if (!text || (text->empty() && !spec.refuses_empty)) return {};
    if (is_address_of_service(name, *text))
      return warn_of_service(name, spec, *text), Result<void>{};
    if (!spec.takes_words) return add_text(name, spec, *text);
    const std::vector<std::string> words = words_of(*text);
    if (words.empty() && spec.refuses_empty)
      return refuse("{} is empty; give a value, or unset it", name);
    for (const std::string& word : words) OCTAVO_CHECK_OK(add_text(name, spec, word));
    return {};
  }

  void warn_of_service(const std::string& name, const OptionSpec& spec, const std::string& text) {
    invocation_.warnings.push_back(
        fmt::format("{} is {}, the address that Kubernetes gives of a Service of that name; it is "
                    "not taken as {}, which a flag sets; 'enableServiceLinks: false' in the Pod's "
                    "specification keeps such variables away",
                    name, quote(text), flag_of(spec.name)));
  }

  Result<void> read_file() {
    if (!invocation_.options.has("config") || !invocation_.options.is_given("config")) return {};
    OCTAVO_TRY(const std::vector<ConfigEntry> entries,
               read_config_file(invocation_.options.text("config"), specs_));
    for (const ConfigEntry& entry : entries) {
      if (invocation_.options.is_given(entry.spec->name)) continue;
      if (entry.texts.empty() && entry.spec->refuses_empty)
        return refuse("{} is an empty list; give a value, or leave it out", entry.given_as);
      for (const std::string& text : entry.texts) {
        OCTAVO_TRY(OptionValue value, parse(*entry.spec, text, entry.given_as));
        invocation_.options.add(*entry.spec, std::move(value));
      }
    }
    return {};
  }

  // Of a command whose MODEL may also be given by a flag.
  Result<void> take_model_flag() {
    const auto expected = invocation_.command->positionals;
    const OptionValues& options = invocation_.options;
    const bool is_meant = !expected.empty() && expected[0].metavar == "MODEL" &&
                          options.has("model") && options.is_given("model");
    if (!is_meant) return {};
    std::vector<std::string>& given = invocation_.positionals;
    if (!given.empty())
      return refuse("MODEL is given twice, as {} and by --model {}; once is enough",
                    quote(given[0]), quote(options.text("model")));
    given.push_back(options.text("model"));
    return {};
  }

  Result<void> check_positionals() const {
    const auto expected = invocation_.command->positionals;
    const std::vector<std::string>& given = invocation_.positionals;
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string_view metavar = expected[i].metavar;
      const bool is_literal = metavar.front() >= 'a' && metavar.front() <= 'z';
      if (i >= given.size() && expected[i].optional) return {};
      if (i >= given.size())
        return refuse("octavo {} needs {}: {}", invocation_.command->name, metavar,
                      expected[i].help);
      if (is_literal && given[i] != metavar)
        return refuse("'octavo {}' has {} in place of {}; allowed: {}", invocation_.command->name,
                      quote(given[i]), metavar, metavar);
    }
    if (given.size() > expected.size())
      return refuse(
          "octavo {} has no use for the argument {}; text of more than one word needs quotes",
          invocation_.command->name, quote(given[expected.size()]));
    return {};
  }

  std::optional<FlagMatch> find(std::string_view flag) const {
    for (const OptionSpec* spec : specs_) {
      const std::string positive = flag_of(spec->name);
      const bool is_state = spec->kind == OptionKind::flag;
      if (flag == positive) return FlagMatch{spec, is_state ? std::optional(true) : std::nullopt};
      if (is_state && flag == "--no-" + positive.substr(2)) return FlagMatch{spec, false};
    }
    return std::nullopt;
  }

  static std::string opposite_of(const FlagMatch& match) {
    const std::string positive = flag_of(match.spec->name);
    return *match.state ? "--no-" + positive.substr(2) : positive;
  }

  tl::unexpected<Error> unknown(const std::string& flag) const {
    std::vector<std::string> candidates = {"--help"};
    for (const OptionSpec* spec : specs_) {
      candidates.push_back(flag_of(spec->name));
      if (spec->kind == OptionKind::flag)
        candidates.push_back("--no-" + candidates.back().substr(2));
    }
    const std::string hint = did_you_mean(flag, candidates);
    return refuse("octavo {} has no flag {}{}", invocation_.command->name, quote(flag),
                  hint.empty()
                      ? fmt::format("; octavo {} --help lists them", invocation_.command->name)
                      : hint);
  }

  Invocation invocation_;
  std::span<const std::string> arguments_;
  std::vector<const OptionSpec*> specs_;
  size_t next_ = 0;
  bool only_positionals_ = false;
};

std::string_view first_word(std::string_view name) { return name.substr(0, name.find(' ')); }
std::string_view second_word(std::string_view name) { return name.substr(name.find(' ') + 1); }
bool has_two_words(std::string_view name) { return name.find(' ') != std::string_view::npos; }

// The command that the arguments begin with, and those after its words.
struct CommandMatch {
  const CommandSpec* command;
  std::span<const std::string> rest;
};

std::optional<CommandMatch> match_command(std::span<const std::string> arguments) {
  for (const CommandSpec& command : commands()) {
    if (arguments.front() != first_word(command.name)) continue;
    if (!has_two_words(command.name)) return CommandMatch{&command, arguments.subspan(1)};
    if (arguments.size() > 1 && arguments[1] == second_word(command.name))
      return CommandMatch{&command, arguments.subspan(2)};
  }
  return std::nullopt;
}

// What may follow the first word of commands of two.
std::vector<std::string> second_words_after(std::string_view first) {
  std::vector<std::string> words;
  for (const CommandSpec& command : commands())
    if (has_two_words(command.name) && first_word(command.name) == first)
      words.emplace_back(second_word(command.name));
  return words;
}

tl::unexpected<Error> unknown_command(std::span<const std::string> arguments) {
  const std::string& name = arguments.front();
  if (const auto words = second_words_after(name); !words.empty()) {
    const std::string choice = fmt::format("{}", fmt::join(words, " or "));
    if (arguments.size() == 1) return refuse("octavo {} needs {}", name, choice);
    return refuse("octavo {} has no {}; it needs {}", name, quote(arguments[1]), choice);
  }
  std::vector<std::string> names = {"--help", "--version"};
  for (const CommandSpec& command : commands())
    if (!command.hidden) names.emplace_back(first_word(command.name));
  const std::string hint = did_you_mean(name, names);
  return refuse("octavo has no {} {}{}", is_flag(name) ? "flag" : "command", quote(name),
                hint.empty() ? "; octavo --help lists the commands" : hint);
}

}  // namespace

Result<CommandLine> parse_command_line(std::span<const std::string> arguments,
                                       const Environment& environment) {
  if (arguments.empty()) return refuse("octavo needs a command; octavo --help lists them");
  const std::string& first = arguments.front();
  if (is_help(first) || first == "help") return HelpRequest{nullptr};
  if (first == "--version") return VersionRequest{};
  const std::optional<CommandMatch> match = match_command(arguments);
  const std::span<const std::string> rest = match ? match->rest : arguments.subspan(1);
  // Help is given whatever else is wrong, unless "--" says that it is a word.
  const bool wants_help =
      std::any_of(rest.begin(), std::find(rest.begin(), rest.end(), "--"), is_help);
  if (!match && wants_help && !second_words_after(first).empty()) return HelpRequest{nullptr};
  if (!match) return unknown_command(arguments);
  if (wants_help) return HelpRequest{match->command};
  OCTAVO_TRY(Invocation invocation, Reader(*match->command, rest).read(environment));
  return invocation;
}

}  // namespace octavo::cli
