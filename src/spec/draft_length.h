// How much of a guess is worth verifying (adaptive draft length): a pure function of what was
// measured.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "sched/step_model.h"

namespace octavo {

inline constexpr int kMaxDraftTokens = 32;

// How often the drafts of one sequence came true, the later ones counting more. A draft is tested
// only if those before it came true: rate(i) is that of place i given the places before.
class AcceptanceRate {
 public:
  // weight: of this one in the moving means; without it, less the more was seen.
  void observe(int num_drafts, int num_accepted);
  void observe(int num_drafts, int num_accepted, double weight);
  double rate(int place) const { return rates_[static_cast<size_t>(place)]; }

 private:
  // Before anything is known: guesses come mostly true, so that they are tried.
  static constexpr double kPrior = 0.8;
  std::array<double, kMaxDraftTokens> rates_ = filled();
  int num_observed_ = 0;

  static constexpr std::array<double, kMaxDraftTokens> filled() {
    std::array<double, kMaxDraftTokens> rates{};
    for (double& rate : rates) rate = kPrior;
    return rates;
  }
};

struct DraftWish {
  const AcceptanceRate* acceptance;
  int depth;  // how many places have drafts; how many of them to verify afterwards
  std::span<const int> widths = {};  // drafts for each place; empty: one
};

// Cuts the wishes of one step so that the tokens it is expected to give, over the time it is
// predicted to take, are the most; to none if that is not clearly more than without any. `work`:
// the step without drafts. draft_token_s: what making one more draft costs in itself.
void cut_drafts(std::span<DraftWish> wishes, const StepWork& work, const StepTimeModel& step_model,
                double draft_token_s);

}  // namespace octavo
