// The controller in a world whose costs and luck are known.
#include "spec/speculator.h"

#include <gtest/gtest.h>

#include <random>

namespace octavo {
namespace {

// As many tokens as are wanted.
class FullDrafter final : public Drafter {
 public:
  explicit FullDrafter(int most) : most_(most) {}
  std::string_view name() const override { return "full"; }
  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) {
      ++asked;
      if (only_first && task != tasks.front()) continue;
      const auto count = static_cast<size_t>(std::min(task->max_tokens, most_));
      made += static_cast<int>(count);
      task->draft.assign(count, TokenId{1});
      if (draws) task->q.assign(count, Distribution{{{TokenId{1}, 1}}});
    }
  }
  void finish(const FinishedSequence&) override {}

  int asked = 0, made = 0;
  bool draws = false, only_first = false;

 private:
  int most_;
};

// Steps of 5 ms and 1 ms for each sequence; drafts cost `draft_ms` each, and 1 ms if there are any.
class World {
 public:
  World(double draft_ms, int num_seqs, int most = 8) : draft_ms_(draft_ms), num_seqs_(num_seqs) {
    std::vector<std::unique_ptr<Drafter>> drafters;
    auto drafter = std::make_unique<FullDrafter>(most);
    drafter_ = drafter.get();
    drafters.push_back(std::move(drafter));
    speculator_ = std::make_unique<Speculator>(SpeculatorOptions{.num_speculative_tokens = 8},
                                               std::move(drafters));
  }

  void step(double acceptance) {
    StepWork work{.num_seqs = num_seqs_};
    const TokenId last{7};
    std::vector<DraftTask> tasks;
    for (int i = 0; i < num_seqs_; ++i)
      tasks.push_back({.id = SeqId{first_ + i}, .tokens = {&last, 1}, .max_tokens = 8});
    speculator_->propose(tasks, work, model_);
    for (const DraftTask& task : tasks) work.draft_tokens += static_cast<int>(task.draft.size());
    const double ms = 5 + num_seqs_ + draft_ms_ * work.draft_tokens + (work.draft_tokens > 0);
    model_.observe(work, ms / 1000);
    ms_ += ms;
    tokens_ += num_seqs_;
    drafts_ += work.draft_tokens;
    drafted_steps_ += work.draft_tokens > 0;
    for (const DraftTask& task : tasks) verify(task, acceptance);
  }
  void run(int steps, double acceptance) {
    ms_ = tokens_ = 0;
    drafts_ = drafted_steps_ = 0;
    for (int i = 0; i < steps; ++i) step(acceptance);
  }
  void replace_sequences() {
    for (int i = 0; i < num_seqs_; ++i)
      speculator_->finish({.id = SeqId{first_ + i}, .prompt = {}, .answer = {}});
    first_ += num_seqs_;
  }

  // Tokens per second of the last run, in those of steps without drafts.
  double gain() const { return tokens_ / ms_ * (5 + num_seqs_) / num_seqs_; }
  int drafts() const { return drafts_; }
  int drafted_steps() const { return drafted_steps_; }
  int asked() const { return drafter_->asked; }
  int made() const { return drafter_->made; }
  void guess_the_first_alone(bool draws) {
    drafter_->only_first = true;
    drafter_->draws = draws;
  }

 private:
  void verify(const DraftTask& task, double acceptance) {
    if (task.draft.empty()) return;
    const auto num_drafts = static_cast<int>(task.draft.size());
    int accepted = 0;
    while (accepted < num_drafts && std::uniform_real_distribution<double>()(random_) < acceptance)
      ++accepted;
    tokens_ += accepted;
    speculator_->verified(task.id, num_drafts, accepted, accepted < num_drafts);
  }

  double draft_ms_;
  int num_seqs_;
  FullDrafter* drafter_;
  std::unique_ptr<Speculator> speculator_;
  StepTimeModel model_;
  std::mt19937 random_{5};
  int first_ = 0;
  double ms_ = 0, tokens_ = 0;
  int drafts_ = 0, drafted_steps_ = 0;
};

// As often right, always as many as is best: tokens per second in those of steps without drafts.
double best_gain(double draft_ms, int num_seqs, double acceptance) {
  double best = 1, tokens = 1, reached = 1;
  for (int k = 1; k <= 8; ++k) {
    tokens += reached *= acceptance;
    best = std::max(best, tokens * (5 + num_seqs) / (6 + num_seqs + draft_ms * k * num_seqs));
  }
  return best;
}

TEST(Speculator, GainsAlmostWhatTheBestNumberWould) {
  for (const double draft_ms : {0.05, 0.2, 0.4})
    for (const double acceptance : {0.6, 0.7, 0.8, 0.9}) {
      World world(draft_ms, 1);
      world.run(100, acceptance);
      world.run(1000, acceptance);
      EXPECT_GT(world.gain(), 0.93 * best_gain(draft_ms, 1, acceptance))
          << draft_ms << ", " << acceptance;
    }
}

TEST(Speculator, LosesLittleWhereNothingComesTrue) {
  for (const int num_seqs : {1, 16}) {
    World world(0.4, num_seqs);
    world.run(100, 0);
    world.run(400, 0);
    EXPECT_GT(world.gain(), 0.98) << num_seqs;
    EXPECT_LT(world.drafted_steps(), 12) << num_seqs;
  }
}

TEST(Speculator, TurnsItselfOffInFullSteps) {
  World world(1, 16);  // a draft costs what a sequence does
  world.run(100, 0.6);
  world.run(400, 0.6);
  EXPECT_GT(world.gain(), 0.97);
}

TEST(Speculator, TurnsItselfOnAgain) {
  World world(0.4, 2);
  world.run(600, 0);
  world.run(4000, 0.9);
  world.run(200, 0.9);
  EXPECT_GT(world.gain(), 1.5);
}

// What was learned of others is expected of new sequences.
TEST(Speculator, NewSequencesDoNotPayForTheLesson) {
  World world(0.4, 1);
  for (int i = 0; i < 30; ++i) {
    world.run(20, 0);
    world.replace_sequences();
  }
  const int asked = world.asked();
  for (int i = 0; i < 30; ++i) {
    world.run(20, 0);
    world.replace_sequences();
  }
  EXPECT_LE(world.asked() - asked, 6);
}

// One short guess does not pay for what the first draft of a step costs.
TEST(Speculator, TooFewAreDropped) {
  World world(2.5, 4, 1);
  world.run(200, 0.9);
  world.run(400, 0.9);
  EXPECT_GT(world.gain(), 0.97);
}

// How many drafts there are may depend on which they are, and whether one is verified must not.
TEST(Speculator, WhatWasDrawnIsNotDropped) {
  World certain(0.4, 4, 1), drawn(0.4, 4, 1);
  certain.guess_the_first_alone(false);
  drawn.guess_the_first_alone(true);
  for (World* world : {&certain, &drawn}) world->run(400, 0.9);
  EXPECT_LT(certain.drafts(), certain.made() / 2);
  EXPECT_EQ(drawn.drafts(), drawn.made());
}

TEST(Speculator, SomeStepsShowWhatTheOthersCost) {
  World world(0.1, 1);
  world.run(1000, 1);
  EXPECT_LT(world.drafted_steps(), 980);
  EXPECT_GT(world.drafted_steps(), 940);
}

}  // namespace
}  // namespace octavo
