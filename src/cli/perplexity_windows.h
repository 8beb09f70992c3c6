// How a text is cut into windows whose tokens a model is asked to predict.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"

namespace octavo::cli {

// Windows of `context` tokens one after the other. With bos each begins with it and has one token
// less of the text. A last, shorter window is kept if it has at least two tokens, so that there is
// one to predict. REQUIRES: context >= 2.
std::vector<std::vector<TokenId>> cut_into_windows(std::span<const TokenId> tokens, int context,
                                                   std::optional<TokenId> bos);

}  // namespace octavo::cli
