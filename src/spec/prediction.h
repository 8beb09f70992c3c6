// Predicted outputs: guesses from what a request says that its answer will repeat.
#pragma once

#include "spec/drafter.h"

namespace octavo {

// Where `prediction` goes on after the last tokens of `answer`: behind the longest run that both
// have, of equally long ones at the place nearest to where the answer is, since changes seldom move
// it far. prediction.size(): nowhere, or the run is too short to mean anything. An answer that
// began as the prediction does is at its place from the first token on.
size_t find_in_prediction(std::span<const TokenId> prediction, std::span<const TokenId> answer);

class PredictionDrafter final : public Drafter {
 public:
  std::string_view name() const override { return "prediction"; }
  void propose(std::span<DraftTask* const> tasks) override;
  void finish(const FinishedSequence&) override {}
};

}  // namespace octavo
