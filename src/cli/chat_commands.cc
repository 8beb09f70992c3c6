#include "cli/chat_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/option_table.h"

namespace octavo::cli {
namespace {

struct Row {
  ChatCommand command;
  std::string_view name, argument, help;
};

constexpr std::array kRows = {
    Row{ChatCommand::help, "help", "", "shows this"},
    Row{ChatCommand::clear, "clear", "", "forgets the conversation, but for the system message"},
    Row{ChatCommand::retry, "retry", "", "answers the last message once more"},
    Row{ChatCommand::system, "system", "[TEXT]", "shows the system message, or sets it"},
    Row{ChatCommand::exit, "exit", "", "ends the program; so does Ctrl-D"},
};

std::string did_you_mean(std::string_view name) {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  const std::string_view nearest = nearest_name(name, names);
  return nearest.empty() ? "" : fmt::format("did you mean /{}? ", nearest);
}

bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }

}  // namespace

Result<std::optional<ChatCommandLine>> parse_chat_command(std::string_view line) {
  const std::string_view word = line.substr(0, line.find_first_of(" \n"));
  const bool is_word = word.size() > 1 && word.front() == '/' &&
                       std::all_of(word.begin() + 1, word.end(), &is_small_letter);
  if (!is_word) return std::nullopt;
  const std::string_view rest = line.substr(word.size());
  const size_t begin = std::min(rest.find_first_not_of(" \n"), rest.size());
  const std::string argument(rest.substr(begin));
  for (const Row& row : kRows) {
    if (row.name != word.substr(1)) continue;
    if (!argument.empty() && row.argument.empty())
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} stands alone; /help lists the commands", word));
    return ChatCommandLine{row.command, argument};
  }
  if (!argument.empty()) return std::nullopt;  // such as "/tmp is full"
  return fail(ErrorCode::invalid_argument, fmt::format("there is no {}; {}/help lists the commands",
                                                       word, did_you_mean(word.substr(1))));
}

std::vector<std::string> chat_help() {
  std::vector<std::string> lines;
  for (const Row& row : kRows)
    lines.push_back(
        fmt::format("{:<16} {}", fmt::format("/{} {}", row.name, row.argument), row.help));
  lines.emplace_back("\"\"\"              begins a message of several lines, and ends it");
  lines.emplace_back("Alt-Enter        begins a new line; pasted text keeps its lines");
  lines.emplace_back("Up, Ctrl-R       find what was typed before");
  lines.emplace_back("Ctrl-C           stops an answer, or drops what is typed");
  return lines;
}

}  // namespace octavo::cli
