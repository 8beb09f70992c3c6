#include "text/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/chat_messages.h"
#include "text/chat_trace.h"
#include "text/effort_variables.h"
#include "text/generic_tools.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

bool has_calls(const Json& plain) {
  return std::any_of(plain.begin(), plain.end(),
                     [](const Json& message) { return message.contains("tool_calls"); });
}

bool has_results(const Json& plain) {
  return std::any_of(plain.begin(), plain.end(),
                     [](const Json& message) { return message["role"] == "tool"; });
}

class Renderer {
 public:
  Renderer(const ChatTemplate& chat_template, const ChatTemplate::Input& input,
           const ConversationOptions& options)
      : template_(chat_template),
        traits_(chat_template.traits()),
        input_(input),
        options_(options),
        tools_in_system_(traits_.shows_system) {}

  Result<Conversation> render() {
    if (!input_.extra.is_null() && !input_.extra.is_object())
      return fail(ErrorCode::invalid_argument, "chat_template_kwargs must be an object");
    set_variables();
    OCTAVO_CHECK_OK(choose_tool_format());
    OCTAVO_TRY(const Json plain, plain_messages(input_.messages));
    OCTAVO_CHECK_OK(choose_parts(plain));
    OCTAVO_TRY(result_.prompt, prompt_of_either(plain));
    OCTAVO_CHECK_OK(show_tools(plain));
    OCTAVO_TRY(std::vector<std::string> lost, find_lost(plain));
    std::move(lost.begin(), lost.end(), std::back_inserter(result_.warnings));
    return std::move(result_);
  }

 private:
  static std::string text_of(const std::vector<TextSpan>& spans) {
    std::string text;
    for (const TextSpan& span : spans) text += span.text;
    return text;
  }

  void set_variables() {
    variables_ = input_.extra;
    std::vector<std::string> unread;
    for (const auto& [name, value] : variables_.items())
      if (!template_.reads(name)) unread.push_back("chat_template_kwargs." + name);
    if (!unread.empty())
      result_.warnings.push_back(no_effect(unread, "the model's chat template does not read it"));
    set_reasoning_effort(template_, options_.reasoning_effort, variables_, result_.warnings);
    set_verbosity(template_, options_.verbosity, variables_, result_.warnings);
  }

  Result<void> choose_tool_format() {
    if (input_.tools.is_null()) return {};
    const bool has_place = traits_.shows_tools;
    result_.tool_format = options_.tool_format;
    if (has_place && (options_.tool_format || !options_.reads_answers)) return {};
    result_.tool_format = &generic_tool_format();
    parts_.tools = true;
    if (options_.generic_tools) return {};
    if (!has_place)
      return fail(ErrorCode::invalid_argument,
                  "tools: the chat template has no place for tools, so the model would not learn "
                  "of them; leave them out or give a template that has (--chat-template)");
    return fail(ErrorCode::invalid_argument,
                "tools: how this model writes its calls is not known; name the format when the "
                "server is started (--tool-call-parser), or leave the tools out");
  }

  Result<void> choose_parts(const Json& plain) {
    parts_.calls = has_calls(plain) && (!traits_.shows_tool_calls || parts_.tools);
    parts_.results = options_.generic_tools && has_results(plain) &&
                     (!traits_.shows_tool_results || parts_.tools);
    if (options_.generic_tools || !parts_.calls) return {};
    return fail(ErrorCode::invalid_argument,
                "messages: the chat template has no place for calls of tools; leave them out");
  }

  // A template that has a place for calls and their results may yet refuse them.
  Result<std::vector<TextSpan>> prompt_of_either(const Json& plain) {
    auto prompt = prompt_of(plain);
    const WrittenOut all = {parts_.tools, has_calls(plain), has_results(plain)};
    if (prompt || prompt.error().code != ErrorCode::template_error || !options_.generic_tools ||
        parts_ == all)
      return prompt;
    const WrittenOut before = std::exchange(parts_, all);
    auto written_out = prompt_of(plain);
    if (written_out) return written_out;
    parts_ = before;
    return prompt;
  }

  // Some templates show the system's message with some last messages only.
  Result<void> show_tools(const Json& plain) {
    if (!parts_.tools || !tools_in_system_ ||
        text_of(result_.prompt).find(kToolsMark) != std::string::npos)
      return {};
    tools_in_system_ = false;
    OCTAVO_TRY(result_.prompt, prompt_of(plain));
    return {};
  }

  // Warnings of fields. What the system says and the template drops becomes the user's.
  Result<std::vector<std::string>> find_lost(const Json& plain) {
    ChatTrace trace = trace_now();
    const auto is_system = [&](size_t place) {
      return plain[place]["role"] == "system" || plain[place]["role"] == "developer";
    };
    const auto& lost = trace.lost_messages;
    if (!lost.empty() && std::all_of(lost.begin(), lost.end(), is_system)) {
      as_users_ = lost;
      OCTAVO_TRY(result_.prompt, prompt_of(plain));
      trace = trace_now();
    }
    if (lost.empty()) return std::move(trace.warnings);
    return fail(ErrorCode::invalid_argument,
                fmt::format("messages[{}] of the role {} would leave no trace in the prompt: the "
                            "model's chat template does not show it there; leave it out, or say "
                            "it in a message of the user",
                            lost.front(), plain[lost.front()]["role"].dump()));
  }

  ChatTrace trace_now() const {
    return trace_of(input_.messages, text_of(result_.prompt),
                    [this](Json messages) { return text_with(std::move(messages)); });
  }

  Result<std::vector<TextSpan>> prompt_of(Json plain) const {
    ChatTemplate::Input input = input_without_messages();
    show_as_users(plain, as_users_);
    if (parts_.calls || parts_.results) {
      const bool own = options_.tool_format && !parts_.tools;
      plain = write_out(plain, parts_, own ? *options_.tool_format : generic_tool_format());
    }
    if (parts_.tools) add_tools(plain, input_.tools, tools_in_system_);
    input.messages = shape_messages(std::move(plain), traits_);
    return template_.render(input);
  }

  ChatTemplate::Input input_without_messages() const {
    ChatTemplate::Input input;
    input.add_generation_prompt = input_.add_generation_prompt;
    if (!parts_.tools) input.tools = input_.tools;
    input.bos_token = input_.bos_token;
    input.eos_token = input_.eos_token;
    input.more_tokens = input_.more_tokens;
    input.extra = variables_;
    input.now_s = input_.now_s;
    input.stop = input_.stop;
    return input;
  }

  std::optional<std::string> text_with(Json messages) const {
    auto plain = plain_messages(std::move(messages));
    if (!plain) return std::nullopt;
    const auto prompt = prompt_of(std::move(*plain));
    return prompt ? std::optional(text_of(*prompt)) : std::nullopt;
  }

  const ChatTemplate& template_;
  const ChatTraits& traits_;
  const ChatTemplate::Input& input_;
  const ConversationOptions& options_;
  Json variables_;  // of the template, beside the usual ones
  WrittenOut parts_;
  bool tools_in_system_;
  std::vector<size_t> as_users_;  // messages of the system that the template does not show
  Conversation result_;
};

}  // namespace

Result<Conversation> render_conversation(const ChatTemplate& chat_template,
                                         const ChatTemplate::Input& input,
                                         const ConversationOptions& options) {
  return Renderer(chat_template, input, options).render();
}

}  // namespace octavo
