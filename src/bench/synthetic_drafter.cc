#include "bench/synthetic_drafter.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/rng.h"

namespace octavo {
namespace {

constexpr uint64_t kSeed = 8;

}  // namespace

SyntheticDrafter::Work SyntheticDrafter::work_of(DraftTask& task) const {
  const auto prompt = task.tokens.first(static_cast<size_t>(task.prompt_tokens));
  const auto found = answers_.find({prompt.begin(), prompt.end()});
  const bool known = found != answers_.end();
  return {.task = &task,
          .answer = known ? &found->second : nullptr,
          .number = known ? static_cast<uint32_t>(std::distance(answers_.begin(), found)) : 0,
          .tokens = {task.tokens.begin(), task.tokens.end()}};
}

bool SyntheticDrafter::open(const Work& work) const {
  const size_t place = work.tokens.size() - static_cast<size_t>(work.task->prompt_tokens);
  return work.answer && place < work.answer->size() &&
         std::cmp_less(work.task->draft.size(), work.task->max_tokens);
}

// A wrong one is any other token; which does not matter.
TokenId SyntheticDrafter::guess(const Work& work) const {
  const size_t place = work.tokens.size() - static_cast<size_t>(work.task->prompt_tokens);
  const TokenId right = (*work.answer)[place];
  if (uniform(kSeed, work.number, place) < acceptance_) return right;
  return TokenId{raw(right) == 0 ? 1 : 0};
}

// For one token each, so that it computes what a model that had made our guesses would compute.
void SyntheticDrafter::ask_model(std::span<Work> work) {
  std::vector<DraftTask> tasks;
  for (const Work& each : work) {
    if (!open(each)) continue;
    tasks.push_back(*each.task);
    tasks.back().tokens = each.tokens;
    tasks.back().max_tokens = 1;
    tasks.back().draft.clear();
  }
  std::vector<DraftTask*> asked;
  for (DraftTask& task : tasks) asked.push_back(&task);
  model_->propose(asked);
}

void SyntheticDrafter::propose(std::span<DraftTask* const> tasks) {
  std::vector<Work> work;
  for (DraftTask* task : tasks) work.push_back(work_of(*task));
  const auto is_open = [&](const Work& each) { return open(each); };
  while (std::any_of(work.begin(), work.end(), is_open)) {
    if (model_) ask_model(work);
    for (Work& each : work) {
      if (!open(each)) continue;
      each.task->draft.push_back(guess(each));
      each.tokens.push_back(each.task->draft.back());
    }
  }
}

}  // namespace octavo
