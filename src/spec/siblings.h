// Token trees, as in SpecInfer and Medusa: from a chain of guesses to a tree, what would have been
// the second choice, beside what was the first, where it is likely enough.
#pragma once

#include <span>
#include <vector>

#include "core/draft_tree.h"
#include "spec/drafter.h"

namespace octavo {

struct SiblingGuess {
  int place;  // in the chain; the guess stands beside the chain's
  TokenId token;
  double probability;
};

// What else is likely at a place of the chain, the `count` most probable tokens but `taken`; sets
// `probability` to that of `taken`.
std::vector<SiblingGuess> siblings_of(std::span<const float> logits, int place, TokenId taken,
                                      int count, double& probability);

// Keeps those task.max_tokens of the chain in task.draft and of the siblings that are most likely
// to be reached and to come true. probabilities: of the chain, each given those before.
void add_siblings(DraftTask& task, std::span<const double> probabilities,
                  std::span<const SiblingGuess> siblings);

}  // namespace octavo
