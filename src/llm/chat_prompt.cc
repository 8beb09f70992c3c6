#include "llm/chat_prompt.h"

#include <fmt/format.h>

#include <ctime>

#include "base/rng.h"
#include "engine/admission.h"
#include "text/builtin_templates.h"
#include "text/chat_input.h"
#include "text/chat_messages.h"
#include "text/chat_tools.h"
#include "text/json_pieces.h"
#include "text/ordered_json.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

int64_t local_now_s() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  return localtime_r(&now, &local) ? now + local.tm_gmtoff : now;
}

std::string spelled(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  return id ? tokenizer.piece(*id) : std::string();
}

const ChatTemplate& template_of(const LoadedEngine& engine, const TemplateExtras& extras) {
  if (extras.chat_template) return *extras.chat_template;
  const bool has_tools = !extras.tools.is_null();
  return has_tools && engine.tool_template ? *engine.tool_template : *engine.chat_template;
}

Result<Conversation> render(const LoadedEngine& engine, const Json& messages,
                            bool add_generation_prompt, const ChatOptions& options,
                            const TemplateExtras& extras) {
  ChatTemplate::Input input;
  input.messages = messages;
  input.add_generation_prompt = add_generation_prompt;
  input.bos_token = spelled(*engine.tokenizer, engine.tokenizer->bos());
  input.eos_token = spelled(*engine.tokenizer, engine.tokenizer->eos());
  input.more_tokens = {{"unk_token", spelled(*engine.tokenizer, engine.tokenizer->unknown())},
                       {"pad_token", spelled(*engine.tokenizer, engine.tokenizer->padding())}};
  input.extra = extras.kwargs;
  input.tools = extras.tools;
  input.now_s = local_now_s();
  input.stop = extras.stop;
  ConversationOptions conversation = extras.conversation;
  conversation.reasoning_effort = options.reasoning_effort;
  conversation.verbosity = options.verbosity;
  return render_conversation(template_of(engine, extras), input, conversation);
}

// A word that is nowhere in the messages: nobody could know it when they were written.
std::string placeholder() { return fmt::format("octavoFinalMessage{:016x}", fresh_seed()); }

// Cuts the spans where `word` stands and puts `content` there. False: the word is not there exactly
// once, as content.
bool end_with(std::vector<TextSpan>& spans, const std::string& word, const std::string& content) {
  size_t found_in = spans.size();
  for (size_t i = 0; i < spans.size(); ++i) {
    const size_t at = spans[i].text.find(word);
    if (at == std::string::npos) continue;
    const bool again = spans[i].text.find(word, at + 1) != std::string::npos;
    if (found_in != spans.size() || again || spans[i].is_template) return false;
    found_in = i;
  }
  if (found_in == spans.size()) return false;
  spans.resize(found_in + 1);
  TextSpan& last = spans.back();
  last.text.replace(last.text.find(word), std::string::npos, content);
  return true;
}

// The last message's content is rendered as a placeholder and then put in, so that it need not be
// searched in the text, nor is changed by the template, which may cut spaces off its ends.
Result<Conversation> render_to_continue(const LoadedEngine& engine, Json messages,
                                        const ChatOptions& options, const TemplateExtras& extras) {
  const auto refuse = [](std::string_view why) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("continue_final_message: {}; leave it out", why));
  };
  if (!messages.is_array() || messages.empty() || !messages.back().is_object())
    return refuse("there is no last message");
  Json& last = messages.back();
  if (!last.contains("role") || last["role"] != "assistant")
    return refuse("the last message is not the assistant's");
  if (!last.contains("content") || last["content"].is_null()) last["content"] = "";
  OCTAVO_TRY(
      const std::string content,
      text_of_content(last["content"], fmt::format("messages[{}].content", messages.size() - 1)));
  const std::string word = placeholder();
  last["content"] = word;
  OCTAVO_TRY(Conversation conversation, render(engine, messages, false, options, extras));
  if (!end_with(conversation.prompt, word, content))
    return refuse("the model's chat template changes the last message");
  return conversation;
}

}  // namespace

Json to_json(const ChatMessages& messages) {
  Json json = Json::array();
  for (const ChatMessage& message : messages) {
    json.push_back({{"role", message.role}, {"content", message.content}});
    Json& last = json.back();
    if (!message.reasoning_content.empty()) last["reasoning_content"] = message.reasoning_content;
    if (!message.tool_call_id.empty()) last["tool_call_id"] = message.tool_call_id;
    for (const ChatToolCall& call : message.tool_calls)
      last["tool_calls"].push_back(
          {{"id", call.id},
           {"type", "function"},
           {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return json;
}

Result<Json> parse_tools(const std::string& text) {
  if (text.empty()) return Json(nullptr);
  Json tools = is_json(text) ? parse_ordered_json(text) : Json();
  if (const auto checked = check_tools(tools); !checked)
    return fail(ErrorCode::invalid_argument, checked.error().message);
  return tools.empty() ? Json(nullptr) : tools;
}

Result<ChatPrompt> render_chat(const LoadedEngine& engine, const Json& messages,
                               const ChatOptions& options, const TemplateExtras& extras) {
  if (!extras.chat_template && engine.chat_template_error)
    return tl::make_unexpected(*engine.chat_template_error);
  if (!extras.chat_template && !engine.chat_template)
    return fail(ErrorCode::unsupported,
                engine.pooling.is_all
                    ? std::string(kEncoderWritesNoText)
                    : fmt::format("the model's file has no chat template; {}, or give the prompt "
                                  "as plain text",
                                  template_advice(*engine.tokenizer)));
  if (options.add_generation_prompt.value_or(false) && options.continue_final_message)
    return fail(ErrorCode::invalid_argument,
                "continue_final_message and add_generation_prompt contradict each other; set the "
                "second to false or leave it out");
  OCTAVO_TRY(Conversation conversation,
             options.continue_final_message
                 ? render_to_continue(engine, messages, options, extras)
                 : render(engine, messages, options.add_generation_prompt.value_or(true), options,
                          extras));
  ChatPrompt prompt;
  prompt.tool_format = conversation.tool_format;
  prompt.warnings = std::move(conversation.warnings);
  const std::vector<TextSpan>& spans = conversation.prompt;
  for (const TextSpan& span : spans) prompt.text += span.text;
  if (!spans.empty()) prompt.end = spans.back();
  OCTAVO_TRY(prompt.ids, engine.tokenizer->encode(spans, extras.add_special_tokens, extras.stop));
  return prompt;
}

}  // namespace octavo
