// Whether a tokenizer belongs to the model beside it.
#pragma once

#include <string>

#include "base/result.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

// num_rows: of the embedding. chat_template: the one in use, or nullptr. corrupt_file: a token that
// text, the beginning or end of a text, or the chat template needs has no row; every request with
// it would fail. Of control tokens that nothing needs a note is returned, else nothing.
Result<std::string> check_tokens(const std::string& file, const Tokenizer& tokenizer, int num_rows,
                                 const ChatTemplate* chat_template);

}  // namespace octavo
