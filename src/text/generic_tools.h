// Tools for models whose template has no place for them: what they may call is told in the
// system's message, and calls and their results stand in the conversation as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "text/answer_format.h"

namespace octavo {

// How answers call the tools that add_tools() tells of.
const ToolFormat& generic_tool_format();

// Which parts of a conversation are written out as text.
struct WrittenOut {
  bool tools = false, calls = false, results = false;

  bool operator==(const WrittenOut&) const = default;
};

// All take plain messages (text/chat_messages.h).

// Describes the tools in the first message of the system, or at the beginning of the user's first
// one.
void add_tools(nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
               bool in_system);
// Stands in the description, and hardly in what a user writes.
inline constexpr std::string_view kToolsMark = "Each line between <tools> and </tools>";

// Messages of the system that the template would not show (ascending places) become the beginning
// of the user's next message, else the end of the one before; without either they stay.
void show_as_users(nlohmann::ordered_json& messages, const std::vector<size_t>& places);

// Calls become the text in which an answer makes them (`format`), results a message of the user,
// with the name of the tool that was called. Neighbouring results are one message, together with
// what the user says after them: many templates take turns strictly.
nlohmann::ordered_json write_out(const nlohmann::ordered_json& messages, WrittenOut parts,
                                 const ToolFormat& format);

}  // namespace octavo
