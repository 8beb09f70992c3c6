#include "spec/prediction.h"

#include <algorithm>

namespace octavo {
namespace {

// Of two tokens there are many places; they say little about the right one.
constexpr size_t kShortest = 3;
// Of tokens that are compared: a place that fits so well is the right one.
constexpr size_t kLongest = 32;

}  // namespace

size_t find_in_prediction(std::span<const TokenId> prediction, std::span<const TokenId> answer) {
  const size_t size = prediction.size(), length = answer.size();
  size_t best = size, best_run = 0;
  const auto consider = [&](size_t at) {
    if (at == 0 || at >= size) return;
    const size_t most = std::min({kLongest, at, length});
    size_t run = 0;
    while (run < most && prediction[at - 1 - run] == answer[length - 1 - run]) ++run;
    const bool is_beginning = run == at && run == length;
    if (run <= best_run || (run < kShortest && !is_beginning)) return;
    best = at;
    best_run = run;
  };
  for (size_t distance = 0; distance < std::max(size, length) && best_run < kLongest; ++distance) {
    consider(length + distance);
    if (0 < distance && distance < length) consider(length - distance);
  }
  return best;
}

void PredictionDrafter::propose(std::span<DraftTask* const> tasks) {
  for (DraftTask* task : tasks) {
    const auto answer = task->tokens.subspan(static_cast<size_t>(task->prompt_tokens));
    const size_t at = find_in_prediction(task->prediction, answer);
    const auto rest = task->prediction.subspan(at);
    const auto count = std::min(rest.size(), static_cast<size_t>(task->max_tokens));
    task->draft.assign(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(count));
  }
}

}  // namespace octavo
