// The tokens that end an answer, and why they do.
#pragma once

#include <string_view>
#include <vector>

#include "core/ids.h"
#include "core/tokenizer_spec.h"

namespace octavo {

enum class EndReason {
  eos,            // the model's files call it the end of a text
  eot,            // of a turn
  listed,         // one more that they list
  usual_name,     // a control token with a name that ends turns in published models
  chat_template,  // the chat template ends the assistant's turns with it
};
std::string_view text_of(EndReason reason);

struct EndToken {
  TokenId id;
  EndReason reason;  // the first that holds
};

// Ascending, each once; all but those of the chat template. REQUIRES: ids are in the vocabulary.
std::vector<EndToken> end_tokens(const TokenizerSpec& spec);

}  // namespace octavo
