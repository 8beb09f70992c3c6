// From messages as clients send them to the prompt of a chat template.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "text/answer_format.h"
#include "text/chat_input.h"
#include "text/chat_template.h"
#include "text/text_span.h"

namespace octavo {

struct ConversationOptions {
  const ToolFormat* tool_format = nullptr;  // in which the model writes calls; nullptr: not known
  bool reads_answers = false;  // calls are looked for in answers, so their format must be known
  // What a template has no place for is written out (text/generic_tools.h).
  bool generic_tools = true;
  std::string reasoning_effort = {}, verbosity = {};  // text/effort_variables.h; empty: unset
};

struct Conversation {
  std::vector<TextSpan> prompt;
  // In which an answer calls the tools that were given; nullptr: none were, or it is not known.
  const ToolFormat* tool_format = nullptr;
  std::vector<std::string> warnings = {};  // sentences that name what has no effect
};

// input: messages as clients send them (text/chat_messages.h). A conversation in which tools were
// called can be rendered with every template that shows the roles user and assistant: what the
// template has no place for is written out. Errors: those of plain_messages() and
// ChatTemplate::render(), and invalid_argument for tools or calls that would not be shown, and for
// a message that would leave no trace.
Result<Conversation> render_conversation(const ChatTemplate& chat_template,
                                         const ChatTemplate::Input& input,
                                         const ConversationOptions& options = {});

}  // namespace octavo
