// From messages to a prompt, by the model's own template.
#pragma once

#include <nlohmann/json.hpp>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/load.h"
#include "llm/prompt.h"
#include "text/conversation.h"
#include "text/text_span.h"

namespace octavo {

struct ChatPrompt {
  std::string text;  // as rendered by the template
  std::vector<TokenId> ids;
  TextSpan end = {};  // the last piece of the text: an answer may begin inside what it opens
  // In which an answer calls the tools that were given; nullptr: none were, or it is not known.
  const ToolFormat* tool_format = nullptr;
  std::vector<std::string> warnings = {};  // sentences that name what has no effect
};

// What one conversation may bring of its own.
struct TemplateExtras {
  const ChatTemplate* chat_template = nullptr;  // in place of the model's
  nlohmann::ordered_json kwargs = nullptr;      // object: further variables of the template
  std::stop_token stop = {};                    // ends it early, with the error cancelled
  nlohmann::ordered_json tools = nullptr;       // list, checked (text/chat_tools.h); null: none
  ConversationOptions conversation = {};
  bool add_special_tokens = false;  // begin and end of text as for plain text, by the model's file
};

// messages: a list of objects with role and content (text/conversation.h). Errors: unsupported (the
// model has no chat template, or one that cannot be used), invalid_argument (options that
// contradict each other; a last message that is not the assistant's or that the template would
// change, so that it cannot be continued), those of render_conversation().
Result<ChatPrompt> render_chat(const LoadedEngine& engine, const nlohmann::ordered_json& messages,
                               const ChatOptions& options = {}, const TemplateExtras& extras = {});

nlohmann::ordered_json to_json(const ChatMessages& messages);

// ChatOptions::tools for TemplateExtras. invalid_argument, naming the place: check_tools().
Result<nlohmann::ordered_json> parse_tools(const std::string& text);

}  // namespace octavo
