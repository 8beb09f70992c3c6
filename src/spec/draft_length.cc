#include "spec/draft_length.h"

#include <algorithm>

namespace octavo {
namespace {

// Less gain than this is lost in what predictions are wrong by.
constexpr double kLeastGain = 1.05;
// What was expected of a sequence is soon forgotten. Twenty drafts are enough to tell rates apart
// and few enough to follow a text that changes.
constexpr double kFirstWeight = 0.1, kLastWeight = 0.05;

struct Step {
  size_t wish;
  double probability;  // that the draft is reached and comes true
};

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
    double probability = 1;
    for (int place = 0; place < wishes[i].num_drafts; ++place)
      steps.push_back({i, probability *= wishes[i].acceptance->rate(place)});
    wishes[i].num_drafts = 0;
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.probability > b.probability; });
  double tokens = work.num_seqs;
  double seconds = step_model.predict(one) + draft_token_s - token_s;
  for (const Step& step : steps) {
    if (step.probability * seconds < token_s * tokens) break;
    tokens += step.probability;
    seconds += token_s;
    ++wishes[step.wish].num_drafts;
  }
  if (tokens * base_s < kLeastGain * work.num_seqs * seconds)
    for (DraftWish& wish : wishes) wish.num_drafts = 0;
}

}  // namespace octavo
