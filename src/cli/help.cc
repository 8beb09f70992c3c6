#include "cli/help.h"

#include <fmt/format.h>

#include <vector>

namespace octavo::cli {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kHelpColumn = 34;

// Breaks text at spaces so that no line is longer than kWidth; lines after the first start at
// `column`, where the first one is said to start. Empty lines between paragraphs stay.
std::string wrapped(std::string_view text, size_t column) {
  std::string out;
  size_t at = column;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    if (at > column && at + 1 + word.size() > kWidth) {
      out += "\n" + std::string(column, ' ');
      at = column;
    } else if (at > column) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
    const bool ends_paragraph = text.substr(end).starts_with("\n\n");
    if (ends_paragraph) out += "\n\n";
    if (ends_paragraph) at = column;
    text.remove_prefix(std::min(end + (ends_paragraph ? 2 : 1), text.size()));
  }
  return out;
}

std::string row(std::string_view left, std::string_view help) {
  std::string out = fmt::format("  {:<{}}", left, kHelpColumn - 2);
  if (left.size() + 3 > kHelpColumn) out += "\n" + std::string(kHelpColumn, ' ');
  return out + wrapped(help, kHelpColumn) + "\n";
}

bool is_on(const OptionSpec& spec) {
  return spec.kind == OptionKind::flag && spec.default_text == "on";
}

// The flag that changes something: --no-name for what is on by default.
std::string shown_flag(const OptionSpec& spec) {
  const std::string flag = flag_of(spec.name);
  if (is_on(spec)) return "--no-" + flag.substr(2);
  return spec.metavar.empty() ? flag : fmt::format("{} {}", flag, spec.metavar);
}

std::string shown_default(const OptionSpec& spec) {
  if (is_on(spec) && spec.default_shown.empty()) return flag_of(spec.name);
  if (is_on(spec)) return std::string(spec.default_shown);
  if (spec.kind == OptionKind::flag) return "";
  return std::string(spec.default_text.empty() ? spec.default_shown : spec.default_text);
}

std::string_view how_often(const OptionSpec& spec) {
  if (spec.takes_words) return "; one or more, and again";
  return spec.repeatable ? "; may be repeated" : "";
}

std::string with_notes(const OptionSpec& spec) {
  std::string out = fmt::format("{}{}", spec.help, how_often(spec));
  const bool names_choices = spec.metavar.find('|') != std::string_view::npos;
  if (!spec.choices.empty() && !names_choices) out += fmt::format(" ({})", allowed_values(spec));
  const std::string value = shown_default(spec);
  return value.empty() ? out : out + fmt::format(" [{}]", value);
}

std::string usage(const CommandSpec& command) {
  std::string out = fmt::format("octavo {}", command.name);
  for (const Positional& positional : command.positionals)
    out += positional.optional ? fmt::format(" [{}]", positional.metavar)
                               : fmt::format(" {}", positional.metavar);
  return out + " [flags]";
}

constexpr std::string_view kEnvironmentNote =
    "Flags that are settings can be set by the environment too, --top-p by OCTAVO_TOP_P; the flag "
    "wins over it, and both over the file of --config. Where a flag takes several words, the "
    "variable has them with spaces between, and the file as a list.";

std::string joined_commands(const OptionSpec& spec) {
  std::string out;
  for (const CommandSpec& command : commands())
    if (spec.commands & bit(command.command))
      out += fmt::format("{}{}", out.empty() ? "" : ", ", command.name);
  return out;
}

// For a cell of a Markdown table.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

std::string code(std::string_view text) {
  return text.empty() ? "" : fmt::format("`{}`", cell(text));
}

std::string markdown_row(const OptionSpec& spec) {
  std::string meaning = fmt::format("{}{}", spec.help, how_often(spec));
  if (!spec.has_variable) meaning += "; has no environment variable";
  const bool is_plain = spec.default_text.empty() || !spec.default_shown.empty();
  const std::string value = is_plain ? cell(spec.default_shown) : code(shown_default(spec));
  const std::string allowed = spec.kind == OptionKind::flag ? "" : allowed_values(spec);
  return fmt::format("| {} | {} | {} | {} | {} |\n", code(shown_flag(spec)), cell(meaning), value,
                     cell(allowed), joined_commands(spec));
}

std::string markdown_options() {
  std::string out;
  std::string_view group;
  for (const OptionSpec& spec : options()) {
    if (spec.group != group)
      out += fmt::format(
          "\n### {}\n\n| flag | meaning | default | allowed | commands |\n|---|---|---|---|---|\n",
          spec.group);
    group = spec.group;
    out += markdown_row(spec);
  }
  return out;
}

std::string markdown_commands() {
  std::string out;
  for (const CommandSpec& command : commands()) {
    if (command.hidden) continue;
    out += fmt::format("\n### `{}`\n\n{}\n", usage(command), command.summary);
    for (const Positional& positional : command.positionals)
      out += fmt::format("{}- `{}`: {}\n", &positional == command.positionals.data() ? "\n" : "",
                         positional.metavar, positional.help);
    if (!command.details.empty()) out += fmt::format("\n{}\n", wrapped(command.details, 0));
  }
  return out;
}

std::string markdown_exit_codes() {
  std::string out =
      "\n## Exit codes\n\n| code | meaning |\n|---|---|\n| 0 | success |\n| 1 | a fault in this "
      "program |\n";
  for (int code = 0; code <= static_cast<int>(ErrorCode::cancelled); ++code)
    out += fmt::format("| {} | `{}` |\n", exit_code(ErrorCode{code}), error_name(ErrorCode{code}));
  return out +
         "\nAn error is one line on standard error: `octavo: error: MESSAGE [name]`. Flags are "
         "checked before any file is "
         "opened.\n";
}

}  // namespace

std::string first_steps() {
  return "octavo needs a command, most often one of these:\n"
         "  octavo serve MODEL                       answers clients of OpenAI's API\n"
         "  octavo chat MODEL                        holds a conversation here\n"
         "  octavo generate MODEL --prompt TEXT      goes on from a text\n"
         "  octavo pull ORG/NAME                     fetches a model\n"
         "  octavo --help                            lists all commands, and after one its flags\n"
         "MODEL is a GGUF file, a Hugging Face folder, a short name (smollm2-135m) or ORG/NAME.\n";
}

std::string help_text() {
  std::string out =
      "Usage: octavo COMMAND ...\n\nGenerates text with large language models from GGUF files.\n\n";
  for (const CommandSpec& command : commands())
    if (!command.hidden) out += row(command.name, command.summary);
  return out + "\n" + row("octavo COMMAND --help", "the flags of a command") +
         row("octavo --version",
             "what this program was made from, and the instruction set it uses");
}

std::string help_text(const CommandSpec& command) {
  std::string out = fmt::format("Usage: {}\n\n{}\n", usage(command), command.summary);
  if (!command.details.empty()) out += fmt::format("\n{}\n", wrapped(command.details, 0));
  out += "\n";
  for (const Positional& positional : command.positionals)
    out += row(positional.metavar, positional.help);
  std::string_view group;
  for (const OptionSpec* spec : options_of(command.command)) {
    if (spec->group != group) out += fmt::format("\n{}:\n", spec->group);
    group = spec->group;
    out += row(shown_flag(*spec), with_notes(*spec));
  }
  return out + fmt::format("\n{}\n", wrapped(kEnvironmentNote, 0));
}

std::string help_markdown() {
  return fmt::format(
      "# Commands and flags\n\n"
      "This page is printed by `octavo help-markdown` from the table that also parses the flags; a "
      "test compares the two.\n\n"
      "## Commands\n{}\n"
      "## Flags\n\n{}\nFlags may stand anywhere after the command; `--flag VALUE` and "
      "`--flag=VALUE` are the same. Each switch `--name` has\n"
      "its opposite `--no-name`; as variables they are `on` or `off`.\n{}{}",
      markdown_commands(), kEnvironmentNote, markdown_options(), markdown_exit_codes());
}

}  // namespace octavo::cli
