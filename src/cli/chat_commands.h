// What begins with a slash in `octavo chat`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace octavo::cli {

enum class ChatCommand : uint8_t { help, clear, retry, system, exit };

struct ChatCommandLine {
  ChatCommand command;
  std::string argument;  // of system; may be empty
};

// Nothing: the line is a message. invalid_argument: a word of small letters after the slash, alone
// or before an argument that it does not take, that is no command.
Result<std::optional<ChatCommandLine>> parse_chat_command(std::string_view line);

// Lines that say which there are and how more than one line is typed.
std::vector<std::string> chat_help();

}  // namespace octavo::cli
