#include "spec/exit_search.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr double kThresholds[] = {0, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95};
constexpr int kMostDrafts = 8;

struct Shares {
  double drafted = 0, accepted = 0;
};

Shares shares_of(std::span<const ExitSample> samples, double threshold) {
  double drafted = 0, accepted = 0;
  for (const ExitSample& sample : samples) {
    if (sample.confidence < threshold) continue;
    drafted += 1;
    accepted += sample.agrees;
  }
  return {drafted / static_cast<double>(samples.size()), drafted > 0 ? accepted / drafted : 0};
}

// A draft is tried if all before it were made, and counts if all before it come true.
double speedup_of(const Shares& shares, int num_drafts, double draft_s, const ExitCosts& costs) {
  double tokens = 1, seconds = costs.step_s, made = 1, accepted = 1;
  for (int i = 0; i < num_drafts; ++i) {
    seconds += made * draft_s;
    made *= shares.drafted;
    accepted *= shares.drafted * shares.accepted;
    seconds += made * costs.verify_token_s;
    tokens += accepted;
  }
  return tokens * costs.step_s / seconds;
}

class Searcher {
 public:
  explicit Searcher(const ExitSearch& search) : search_(search) {
    for (int layer = 0; layer < search.num_layers; ++layer) layers_.push_back({layer, 0});
  }

  Result<std::vector<ExitCandidate>> run() {
    int fruitless = 0;
    while (layers_.size() > 1 && fruitless < search_.patience) {
      const double best = found_.empty() ? 0 : best_exit(found_).prediction.speedup;
      OCTAVO_CHECK_OK(skip_one_more());
      fruitless = found_.back().prediction.speedup > best ? 0 : fruitless + 1;
      if (search_.on_step) search_.on_step(found_.back());
    }
    return std::move(found_);
  }

 private:
  struct Layer {
    int index;
    double promise;  // predicted speed-up when it was last tried
  };

  Result<void> skip_one_more() {
    const size_t tries = found_.empty() ? layers_.size() : static_cast<size_t>(search_.candidates);
    std::ranges::stable_sort(layers_, std::greater(), &Layer::promise);
    ExitCandidate best;
    for (Layer& layer : std::span(layers_).first(std::min(tries, layers_.size()))) {
      OCTAVO_TRY(ExitCandidate candidate, with(layer.index));
      layer.promise = candidate.prediction.speedup;
      if (layer.promise > best.prediction.speedup) best = std::move(candidate);
    }
    std::erase_if(layers_, [&](const Layer& layer) {
      return std::ranges::binary_search(best.skipped_layers, layer.index);
    });
    found_.push_back(std::move(best));
    return {};
  }

  Result<ExitCandidate> with(int layer) {
    ExitCandidate candidate;
    if (!found_.empty()) candidate.skipped_layers = found_.back().skipped_layers;
    auto& layers = candidate.skipped_layers;
    layers.insert(std::ranges::upper_bound(layers, layer), layer);
    OCTAVO_TRY(const std::vector<ExitSample> samples, search_.sample(layers));
    candidate.prediction = predict_exit(samples, static_cast<int>(layers.size()), search_.costs);
    return candidate;
  }

  const ExitSearch& search_;
  std::vector<Layer> layers_;  // that are not skipped
  std::vector<ExitCandidate> found_;
};

}  // namespace

ExitPrediction predict_exit(std::span<const ExitSample> samples, int num_skipped,
                            const ExitCosts& costs) {
  const double draft_s = costs.step_s - num_skipped * costs.layer_s;
  ExitPrediction best;
  for (const double threshold : kThresholds) {
    const Shares shares = shares_of(samples, threshold);
    for (int drafts = 1; drafts <= kMostDrafts; ++drafts) {
      const double speedup = speedup_of(shares, drafts, draft_s, costs);
      if (speedup > best.speedup)
        best = {threshold, drafts, shares.drafted, shares.accepted, speedup};
    }
  }
  return best;
}

Result<std::vector<ExitCandidate>> search_exit(const ExitSearch& search) {
  return Searcher(search).run();
}

const ExitCandidate& best_exit(std::span<const ExitCandidate> candidates) {
  return *std::ranges::max_element(
      candidates, {}, [](const ExitCandidate& candidate) { return candidate.prediction.speedup; });
}

}  // namespace octavo
