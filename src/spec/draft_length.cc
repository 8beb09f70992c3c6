#include "spec/draft_length.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr double kWeight = 0.1;  // of the latest draft in the moving mean of its place

struct Step {
  size_t wish;
  double probability;  // that the draft is reached and comes true
};

}  // namespace

void AcceptanceRate::observe(int num_drafts, int num_accepted) {
  ++num_observed_;
  const int tested = std::min({num_drafts, num_accepted + 1, kMaxDraftTokens});
  for (int i = 0; i < tested; ++i) {
    double& rate = rates_[static_cast<size_t>(i)];
    rate += kWeight * ((i < num_accepted ? 1.0 : 0.0) - rate);
  }
  // Places that were not reached follow the last one that was, or a run of failures at the first
  // would leave them at their best for ever.
  if (num_accepted < tested)
    for (int i = tested; i < kMaxDraftTokens; ++i) {
      double& rate = rates_[static_cast<size_t>(i)];
      rate += kWeight * (rates_[static_cast<size_t>(tested - 1)] - rate);
    }
}

// A draft is worth its time if its tokens per second are more than those of all else in the step.
// The most promising first, over all sequences: what comes true with less than the share that is
// needed then is cut, and so is all behind it, which is reached less often still.
void cut_drafts(std::span<DraftWish> wishes, const StepWork& work, const StepTimeModel& step_model,
                double draft_token_s) {
  StepWork more = work;
  ++more.draft_tokens;
  const double base_s = step_model.predict(work);
  const double token_s = step_model.predict(more) - base_s + draft_token_s;
  std::vector<Step> steps;
  for (size_t i = 0; i < wishes.size(); ++i) {
    double probability = 1;
    for (int place = 0; place < wishes[i].num_drafts; ++place)
      steps.push_back({i, probability *= wishes[i].acceptance->rate(place)});
    wishes[i].num_drafts = 0;
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.probability > b.probability; });
  double tokens = work.num_seqs, seconds = base_s;
  for (const Step& step : steps) {
    if (step.probability * seconds < token_s * tokens) break;
    tokens += step.probability;
    seconds += token_s;
    ++wishes[step.wish].num_drafts;
  }
}

}  // namespace octavo
