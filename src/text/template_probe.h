// What a chat template tells of the model that it belongs to.
#pragma once

#include <optional>
#include <vector>

#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

// What it makes of a short conversation.
struct TemplateProbe {
  // The control token that follows the assistant's answer.
  std::optional<TokenId> turn_end;
  std::vector<TokenId> control_tokens;  // that it writes, in order
};

// Empty if the template refuses such a conversation.
TemplateProbe probe_template(const ChatTemplate& chat_template, const Tokenizer& tokenizer);

// What the template ends the assistant's turns with ends answers, too. REQUIRES: as
// Tokenizer::end_answers_with().
void end_turns_with(const ChatTemplate& chat_template, Tokenizer& tokenizer);

}  // namespace octavo
