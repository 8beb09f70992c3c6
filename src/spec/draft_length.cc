#include "spec/draft_length.h"

#include <algorithm>

namespace octavo {
namespace {

// Less gain than this is lost in what predictions are wrong by.
constexpr double kLeastGain = 1.05;
// What was expected of a sequence is soon forgotten. Twenty drafts are enough to tell rates apart
// and few enough to follow a text that changes.
constexpr double kFirstWeight = 0.1, kLastWeight = 0.05;

// The drafts of one place of one sequence.
struct Step {
  size_t wish;
  int num_drafts;
  double probability;  // that the place is reached and one of them comes true
  double value;        // of a draft, with all that must be verified before it
};

void add_steps(size_t number, const DraftWish& wish, std::vector<Step>& steps) {
  double probability = 1, value = 1;
  for (int place = 0; place < wish.depth; ++place) {
    const int width = wish.widths.empty() ? 1 : wish.widths[static_cast<size_t>(place)];
    probability *= wish.acceptance->rate(place);
    value = std::min(value, probability / width);
    steps.push_back({number, width, probability, value});
  }
}

}  // namespace

void AcceptanceRate::observe(int num_drafts, int num_accepted) {
  observe(num_drafts, num_accepted,
          std::max(kLastWeight, 1 / (1 / kFirstWeight + num_observed_++)));
}

void AcceptanceRate::observe(int num_drafts, int num_accepted, double weight) {
  const int tested = std::min({num_drafts, num_accepted + 1, kMaxDraftTokens});
  for (int i = 0; i < tested; ++i) {
    double& rate = rates_[static_cast<size_t>(i)];
    rate += weight * ((i < num_accepted ? 1.0 : 0.0) - rate);
  }
  // Places that were not reached follow the last one that was, or a run of failures at the first
  // would leave them at their best for ever.
  if (num_accepted < tested)
    for (int i = tested; i < kMaxDraftTokens; ++i) {
      double& rate = rates_[static_cast<size_t>(i)];
      rate += weight * (rates_[static_cast<size_t>(tested - 1)] - rate);
    }
}

// A draft is worth its time if its tokens per second are more than those of all else in the step.
// The most promising first, over all sequences: what comes true with less than the share that is
// needed then is cut, and so is all behind it, which is reached less often still.
void cut_drafts(std::span<DraftWish> wishes, const StepWork& work, const StepTimeModel& step_model,
                double draft_token_s) {
  StepWork one = work, two = work;
  one.draft_tokens = 1;
  two.draft_tokens = 2;
  const double base_s = step_model.predict(work);
  const double token_s = step_model.predict(two) - step_model.predict(one) + draft_token_s;
  std::vector<Step> steps;
  for (size_t i = 0; i < wishes.size(); ++i) {
    add_steps(i, wishes[i], steps);
    wishes[i].depth = 0;
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.value > b.value; });
  double tokens = work.num_seqs;
  double seconds = step_model.predict(one) + draft_token_s - token_s;
  for (const Step& step : steps) {
    if (step.value * seconds < token_s * tokens) break;
    tokens += step.probability;
    seconds += token_s * step.num_drafts;
    ++wishes[step.wish].depth;
  }
  if (tokens * base_s < kLeastGain * work.num_seqs * seconds)
    for (DraftWish& wish : wishes) wish.depth = 0;
}

}  // namespace octavo
