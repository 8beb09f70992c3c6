// Drafters that guess in the language of six letters, and some that break the rules.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "guessing/six_letters.h"
#include "spec/early_exit.h"

namespace octavo::testing {

inline std::unique_ptr<StubDrafter> draft_model(
    RejectionSampleMethod method = RejectionSampleMethod::probabilistic) {
  return std::make_unique<StubDrafter>(kTokens, draft(), method);
}

// Sure enough of most of its guesses, and not of all.
inline constexpr double kConfidence = 0.4;

inline std::unique_ptr<Drafter> early_exit(StubModel& model) {
  model.says_partially = draft();
  return std::move(*EarlyExitDrafter::create(
      model, kTokens, {.skipped_layers = {1}, .confidence_threshold = kConfidence},
      RejectionSampleMethod::probabilistic));
}

template <typename... Drafters>
std::vector<std::unique_ptr<Drafter>> drafters_of(std::unique_ptr<Drafters>... drafters) {
  std::vector<std::unique_ptr<Drafter>> all;
  (all.push_back(std::move(drafters)), ...);
  return all;
}

// One that does something before or after another.
class AroundDrafter : public Drafter {
 public:
  explicit AroundDrafter(std::unique_ptr<Drafter> inner) : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  void propose(std::span<DraftTask* const> tasks) override { inner_->propose(tasks); }
  void finish(const FinishedSequence& sequence) override { inner_->finish(sequence); }

 private:
  std::unique_ptr<Drafter> inner_;
};

// Does something to each guess after it was made.
class BentDrafter : public AroundDrafter {
 public:
  using Bend = std::function<void(DraftTask&)>;

  BentDrafter(std::unique_ptr<Drafter> inner, Bend bend)
      : AroundDrafter(std::move(inner)), bend_(std::move(bend)) {}
  void propose(std::span<DraftTask* const> tasks) override {
    AroundDrafter::propose(tasks);
    for (DraftTask* task : tasks) bend_(*task);
  }

 private:
  Bend bend_;
};

// A wrong rule: it drops guesses for what they are, after they were drawn.
inline void drop_unlikely(DraftTask& task) {
  for (size_t i = 0; i < task.draft.size(); ++i)
    if (task.q[i].of(task.draft[i]) < 0.25) {
      task.draft.resize(i);
      task.q.resize(i);
    }
}

}  // namespace octavo::testing
