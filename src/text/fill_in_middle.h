// Models that were trained to write what is missing between two texts have tokens to say where each
// begins: prefix, suffix, and then the middle, which the model writes.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "text/tokenizer.h"

namespace octavo {

struct FillInMiddle {
  TokenId prefix, suffix, middle;
  std::vector<TokenId> ends;  // tokens that end what was missing, beside the end of an answer
};

// By the spellings that are in use (Qwen Coder, CodeGemma, StarCoder, Granite, DeepSeek Coder,
// GLM); nothing if the tokenizer has none of them as single tokens.
std::optional<FillInMiddle> find_fill_in_middle(const Tokenizer& tokenizer);

// The prompt behind which the model writes what is between the two.
std::vector<TokenId> prompt_between(const FillInMiddle& marks, std::span<const TokenId> before,
                                    std::span<const TokenId> after);

}  // namespace octavo
