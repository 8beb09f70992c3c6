// Texts as tokens, one for each byte, so that a test can be read.
#pragma once

#include <string_view>
#include <vector>

#include "core/ids.h"

namespace octavo::testing {

inline std::vector<TokenId> byte_tokens(std::string_view text) {
  std::vector<TokenId> tokens;
  for (const char c : text) tokens.push_back(TokenId{c});
  return tokens;
}

}  // namespace octavo::testing
