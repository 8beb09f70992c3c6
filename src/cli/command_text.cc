#include "cli/command_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace octavo::cli {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:=,+%@").find(c) != std::string_view::npos;
}

std::string shell_word(std::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

struct ValueText {
  std::string operator()(bool on) const { return on ? "on" : "off"; }
  std::string operator()(const std::string& text) const { return text; }
  std::string operator()(const std::vector<int64_t>& list) const {
    return fmt::format("{}", fmt::join(list, ","));
  }
  std::string operator()(const std::vector<LogitBias>& list) const {
    std::string out;
    for (const LogitBias& entry : list)
      out += fmt::format("{}{}={}", out.empty() ? "" : ",", raw(entry.id), entry.bias);
    return out;
  }
  template <class Number>
  std::string operator()(Number number) const {
    return fmt::format("{}", number);
  }
};

std::string flag_text(const OptionSpec& spec, const OptionValues& options) {
  const std::string flag = flag_of(spec.name);
  if (spec.kind == OptionKind::flag)
    return options.flag(spec.name) ? " " + flag : " --no-" + flag.substr(2);
  std::string out;
  const auto add_all = [&]<class T>(const T&) {
    for (const T& value : options.all<T>(spec.name)) {
      const std::string text = ValueText{}(value);
      // What looks like a flag would be taken for one.
      out += fmt::format(" {}{}{}", flag, text.starts_with('-') ? '=' : ' ', shell_word(text));
    }
  };
  std::visit(add_all, options.given(spec.name));
  return out;
}

}  // namespace

std::string command_text(const Invocation& invocation) {
  std::string text = fmt::format("octavo {}", invocation.command->name);
  for (const std::string& positional : invocation.positionals) text += " " + shell_word(positional);
  const OptionValues& options = invocation.options;
  for (const OptionSpec* spec : options_of(invocation.command->command))
    if (options.is_given(spec->name) && spec->name != "api_key") text += flag_text(*spec, options);
  return text;
}

}  // namespace octavo::cli
