// What a template does with the parts of a conversation: found out once, by rendering small ones.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace octavo {

struct ChatTraits {
  bool wants_parts = false;          // content as a list of parts; a string is not printed
  bool wants_argument_text = false;  // a call's arguments as JSON text; an object is not JSON then
  bool wants_null_content = true;    // of a message that only calls tools; else empty text
  bool shows_tools = false;          // a definition of a tool that is given to it
  bool shows_tool_calls = false;     // name and arguments of a call in the history
  bool shows_tool_results = false;   // content of a message of the role tool
  bool shows_system = false;         // content of a first message of the role system
  bool names_developer = false;      // tells the role developer from system
  std::string reasoning_field = {};  // under which it prints an assistant's reasoning; empty: none
};

// The text of a conversation; empty: the template refuses it. tools: null for none.
using ChatProbe = std::function<std::string(const nlohmann::ordered_json& messages,
                                            const nlohmann::ordered_json& tools)>;

// source: of the template. What it does not name is not tried.
ChatTraits find_chat_traits(std::string_view source, const ChatProbe& render);

}  // namespace octavo
