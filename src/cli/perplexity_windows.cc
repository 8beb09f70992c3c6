#include "cli/perplexity_windows.h"

#include <algorithm>

namespace octavo::cli {

std::vector<std::vector<TokenId>> cut_into_windows(std::span<const TokenId> tokens, int context,
                                                   std::optional<TokenId> bos) {
  const size_t stride = static_cast<size_t>(context) - (bos ? 1 : 0);
  std::vector<std::vector<TokenId>> windows;
  while (!tokens.empty()) {
    const auto part = tokens.first(std::min(stride, tokens.size()));
    std::vector<TokenId> window;
    if (bos) window.push_back(*bos);
    window.insert(window.end(), part.begin(), part.end());
    if (window.size() >= 2) windows.push_back(std::move(window));
    tokens = tokens.subspan(part.size());
  }
  return windows;
}

}  // namespace octavo::cli
