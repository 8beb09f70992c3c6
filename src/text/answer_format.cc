#include "text/answer_format.h"

#include <fmt/format.h>

namespace octavo {
namespace {

constexpr ReasoningFormat kReasoning[] = {
    {"deepseek_r1", "<think>", "</think>", true},
    {"qwen3", "<think>", "</think>"},
    {"glm45", "<think>", "</think>"},
    {"olmo3", "<think>", "</think>", true},
    {"minimax_m2", "<think>", "</think>", true},
    {"mistral", "[THINK]", "[/THINK]"},
    {"seed_oss", "<seed:think>", "</seed:think>", true},
    {"granite", "Here is my thought process:", "Here is my response:"},
};

constexpr ToolFormat kTools[] = {
    {"hermes", ToolSyntax::hermes},
    {"llama3_json", ToolSyntax::llama_json},
    {"llama4_json", ToolSyntax::llama_json},
    {"mistral", ToolSyntax::mistral, /*short_ids=*/true},
};

// What in a template's source gives a format away; the first that holds. An empty name: a format
// that looks like one of the others and is none.
struct Sign {
  std::string_view text, format;
  std::string_view also = {};  // must be there, too
};
constexpr Sign kReasoningSigns[] = {
    {"<seed:think>", "seed_oss"},
    {"[THINK]", "mistral"},
    // These templates differ in whether they open the block; the models reason either way.
    {"<｜Assistant｜>", "deepseek_r1", "</think>"},
    {"</think>", "qwen3"},
    {"Here is my thought process", "granite"},
};
constexpr Sign kToolSigns[] = {
    {"[TOOL_CALLS]", "mistral"},       {"<tool_call>", "", "<function="},  // XML inside
    {"<tool_call>", "", "<arg_key>"},  {"<tool_call>", "hermes"},
    {"<|python_tag|>", "llama3_json"},
};

template <class Format>
const Format* by_name(std::span<const Format> formats, std::string_view name) {
  for (const Format& format : formats)
    if (format.name == name) return &format;
  return nullptr;
}

std::string_view format_shown(std::span<const Sign> signs, std::string_view source) {
  for (const Sign& sign : signs)
    if (source.find(sign.text) != std::string_view::npos &&
        source.find(sign.also) != std::string_view::npos)
      return sign.format;
  return "";
}

template <class Format>
Result<const Format*> find(std::span<const Format> formats, std::span<const Sign> signs,
                           std::string_view name, std::string_view source, std::string_view what) {
  if (name == "none") return nullptr;
  if (name == "auto") return by_name(formats, format_shown(signs, source));
  if (const Format* format = by_name(formats, name)) return format;
  std::string known;
  for (const Format& format : formats) known.append(", ").append(format.name);
  return fail(ErrorCode::invalid_argument,
              fmt::format("there is no {} '{}'; known are auto, none{}", what, name, known));
}

size_t last_of(std::string_view text, std::string_view marker) {
  const size_t at = text.rfind(marker);
  return at == std::string_view::npos ? 0 : at + 1;
}

}  // namespace

std::span<const ReasoningFormat> reasoning_formats() { return kReasoning; }
std::span<const ToolFormat> tool_formats() { return kTools; }

Result<const ReasoningFormat*> find_reasoning_format(std::string_view name,
                                                     std::string_view chat_template) {
  return find(reasoning_formats(), std::span<const Sign>(kReasoningSigns), name, chat_template,
              "reasoning parser");
}

Result<const ToolFormat*> find_tool_format(std::string_view name, std::string_view chat_template) {
  return find(tool_formats(), std::span<const Sign>(kToolSigns), name, chat_template,
              "tool-call parser");
}

std::vector<std::string_view> markers_of(const ReasoningFormat* reasoning,
                                         const ToolFormat* tools) {
  std::vector<std::string_view> markers;
  if (reasoning) markers = {reasoning->open, reasoning->close};
  if (!tools) return markers;
  std::vector<std::string_view> more;
  if (tools->syntax == ToolSyntax::hermes) more = {"<tool_call>", "</tool_call>"};
  if (tools->syntax == ToolSyntax::llama_json) more = {"<|python_tag|>"};
  if (tools->syntax == ToolSyntax::mistral) more = {"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"};
  markers.insert(markers.end(), more.begin(), more.end());
  return markers;
}

bool begins_in_reasoning(const ReasoningFormat& format, const TextSpan& end_of_prompt) {
  const size_t opened = last_of(end_of_prompt.text, format.open);
  const size_t closed = last_of(end_of_prompt.text, format.close);
  if (opened == closed) return format.begins_inside && end_of_prompt.is_template;
  return opened > closed;
}

}  // namespace octavo
