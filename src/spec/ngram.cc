#include "spec/ngram.h"

#include <algorithm>
#include <utility>

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

// Where the end of the text comes into reach, the guess itself goes on: what repeats keeps
// repeating.
void NgramDrafter::propose(std::span<DraftTask* const> tasks) {
  for (DraftTask* task : tasks) {
    const size_t found = find_repeat(task->tokens, shortest_, longest_), end = task->tokens.size();
    if (found == end) continue;
    for (size_t at = found; std::cmp_less(task->draft.size(), task->max_tokens); ++at)
      task->draft.push_back(at < end ? task->tokens[at] : task->draft[at - end]);
  }
}

}  // namespace octavo
