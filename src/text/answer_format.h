// How a family of models writes what is more than text in its answers: its reasoning and its calls
// of tools. Names are those of vLLM's --reasoning-parser and --tool-call-parser.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/text_span.h"

namespace octavo {

// A block at the start of the answer, between two markers.
struct ReasoningFormat {
  std::string_view name;
  std::string_view open, close;
  bool begins_inside = false;  // unless the prompt says otherwise, and may open the block again
};

enum class ToolSyntax : uint8_t {
  hermes,      // <tool_call>{"name": ..., "arguments": {...}}</tool_call>
  llama_json,  // {"name": ..., "parameters": {...}}, separated by ';', perhaps after <|python_tag|>
  mistral,     // [TOOL_CALLS][{"name": ..., "arguments": {...}}] or [TOOL_CALLS]name[ARGS]{...}
};
struct ToolFormat {
  std::string_view name;
  ToolSyntax syntax;
  bool short_ids = false;  // the template takes ids of nine letters and digits alone
};

std::span<const ReasoningFormat> reasoning_formats();
std::span<const ToolFormat> tool_formats();

// By name; "none": nullptr; "auto": what the chat template (its source) shows, nullptr for nothing
// that is known. invalid_argument, with the names, for another one.
Result<const ReasoningFormat*> find_reasoning_format(std::string_view name,
                                                     std::string_view chat_template);
Result<const ToolFormat*> find_tool_format(std::string_view name, std::string_view chat_template);

// Markers of a format, any of which may be a control token of the vocabulary: then the text of an
// answer must show it. nullptr: none.
std::vector<std::string_view> markers_of(const ReasoningFormat* reasoning, const ToolFormat* tools);

// Whether an answer to this prompt begins inside the block. Only the end of the prompt counts,
// after all that others wrote: there, templates open the block or close it; and a message that is
// to be continued.
bool begins_in_reasoning(const ReasoningFormat& format, const TextSpan& end_of_prompt);

}  // namespace octavo
