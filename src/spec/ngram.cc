#include "spec/ngram.h"

#include <algorithm>

namespace octavo {

size_t find_repeat(std::span<const TokenId> tokens, int shortest, int longest) {
  const size_t end = tokens.size();
  size_t best = end, best_length = static_cast<size_t>(shortest) - 1;
  const auto most = static_cast<size_t>(longest);
  for (size_t at = end; at-- > 1 && best_length < most;) {
    size_t length = 0;
    while (length < std::min(most, at) && tokens[at - 1 - length] == tokens[end - 1 - length])
      ++length;
    if (length <= best_length) continue;
    best = at;
    best_length = length;
  }
  return best;
}

void NgramDrafter::propose(std::span<DraftTask* const> tasks) {
  for (DraftTask* task : tasks) {
    const auto found = task->tokens.subspan(find_repeat(task->tokens, shortest_, longest_));
    const size_t count = std::min(found.size(), static_cast<size_t>(task->max_tokens));
    task->draft.assign(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

}  // namespace octavo
