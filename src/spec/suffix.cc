#include "spec/suffix.h"

#include <utility>

namespace octavo {
namespace {

constexpr size_t kMaxTokens = 1 << 20;  // of a generation: with its table some 50 MB

}  // namespace

// Of the sequence so far; what came since the last task is added.
TokenIndex& SuffixDrafter::own_index(const DraftTask& task) {
  auto& index = own_[task.id];
  if (!index) index = std::make_unique<TokenIndex>();
  for (size_t i = index->size(); i < task.tokens.size(); ++i) index->append(task.tokens[i]);
  return *index;
}

// Whichever is the longer match; of equal ones the sequence's own, then the newer answers'.
void SuffixDrafter::propose(std::span<DraftTask* const> tasks) {
  for (DraftTask* task : tasks) {
    const ContinuationLimits limits{.max_depth = options_.max_tree_depth,
                                    .max_tokens = task->max_tokens,
                                    .branching_factor = options_.branching_factor,
                                    .tokens_per_match = options_.max_spec_factor,
                                    .min_probability = options_.min_token_prob};
    Continuation best = own_index(*task).continuation(task->tokens, limits);
    for (const Generation& answers : generations_) {
      const auto known = answers.by_key.find(task->key);
      if (known == answers.by_key.end()) continue;
      Continuation other = known->second.continuation(task->tokens, limits);
      if (other.match_length > best.match_length) best = std::move(other);
    }
    task->draft = std::move(best.tokens);
    task->parents = std::move(best.parents);
  }
}

void SuffixDrafter::finish(const FinishedSequence& sequence) {
  own_.erase(sequence.id);
  if (options_.max_cached_requests == 0 || sequence.answer.empty()) return;
  if (generations_[0].num_answers >= (options_.max_cached_requests + 1) / 2 ||
      generations_[0].num_tokens >= kMaxTokens)
    generations_[1] = std::exchange(generations_[0], {});
  Generation& newest = generations_[0];
  TokenIndex& index = newest.by_key[sequence.key];
  for (const TokenId token : sequence.answer) index.append(token);
  index.end_text();
  newest.num_tokens += sequence.answer.size();
  ++newest.num_answers;
}

}  // namespace octavo
