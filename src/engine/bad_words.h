// Words that must not be written, as the tokens that would write them.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace octavo {

// For each word its tokens at the start of a text and those after a space, which may be the same. A
// word can still be written in parts that no tokenizer would choose. invalid_argument for what is
// not UTF-8 or makes no token.
Result<std::vector<std::vector<TokenId>>> encode_bad_words(const std::vector<std::string>& words,
                                                           const Tokenizer& tokenizer);

}  // namespace octavo
