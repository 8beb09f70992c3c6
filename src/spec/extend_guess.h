// How drafters with a model of their own say what comes next.
#pragma once

#include <span>

#include "sampling/sampler.h"
#include "spec/drafter.h"

namespace octavo {

// Adds to the guess what a row of logits after `tokens` (the task's, with its draft) says: as the
// answer will be drawn, with the request's settings. strict: with the same random number too, so
// that the two agree as often as their distributions let them. probabilistic: with a number of its
// own, and with what it was drawn from, which without top_k, top_p and min_p are all tokens of the
// vocabulary. False: the row is no good, and no guess is better than one from it.
bool extend_guess(DraftTask& task, std::span<const TokenId> tokens, std::span<const float> row,
                  RejectionSampleMethod method, Sampler& sampler);

}  // namespace octavo
