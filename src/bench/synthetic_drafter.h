// Guesses that come true as often as is wanted: what guessing would be worth with a draft model
// that is as good as that, at the cost of one that is not.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "spec/drafter.h"

namespace octavo {

class SyntheticDrafter final : public Drafter {
 public:
  // answers: the greedy ones, by prompt; beyond their ends there are no guesses. Each guess is
  // right with the given probability, by its place in the answer alone. model: asked for every
  // guess, which is then replaced by one of ours; nullptr: guesses cost nothing.
  SyntheticDrafter(std::map<std::vector<TokenId>, std::vector<TokenId>> answers, double acceptance,
                   std::unique_ptr<Drafter> model)
      : answers_(std::move(answers)), acceptance_(acceptance), model_(std::move(model)) {}

  std::string_view name() const override { return "synthetic"; }
  void propose(std::span<DraftTask* const> tasks) override;
  void finish(const FinishedSequence& sequence) override {
    if (model_) model_->finish(sequence);
  }

 private:
  // A sequence on its way through one propose().
  struct Work {
    DraftTask* task;
    const std::vector<TokenId>* answer;
    uint32_t number;              // of the answer
    std::vector<TokenId> tokens;  // with the draft so far
  };

  Work work_of(DraftTask& task) const;
  bool open(const Work& work) const;
  void ask_model(std::span<Work> work);
  TokenId guess(const Work& work) const;

  std::map<std::vector<TokenId>, std::vector<TokenId>> answers_;
  double acceptance_;
  std::unique_ptr<Drafter> model_;
};

}  // namespace octavo
