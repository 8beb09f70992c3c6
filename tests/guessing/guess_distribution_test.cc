// Tokens are drawn with the same probabilities whoever guesses, however much, and whatever the
// request's settings: whole answers of engines over a stub against the exact probabilities of their
// parts, worked out step by step.
#include <gtest/gtest.h>

#include <set>

#include "guessing/drafters.h"
#include "spec/ngram.h"
#include "spec/suffix.h"

namespace octavo {
namespace {

using namespace testing;

// Draws two guesses for a place from the draft model's distribution, without putting back, and goes
// on behind the first.
class TreeDrafter : public Drafter {
 public:
  std::string_view name() const override { return "tree"; }
  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) guess(*task);
  }
  void finish(const FinishedSequence&) override {}

 private:
  void guess(DraftTask& task) {
    std::vector<TokenId> tokens(task.tokens.begin(), task.tokens.end());
    for (int parent = kRoot; std::cmp_less(task.draft.size(), task.max_tokens);) {
      std::vector<float> row(kTokens);
      draft()(tokens, row);
      const SampleRequest request{.params = {}, .seed = 0, .history = {}, .eog = {}};
      const Distribution q = sampler_.distribution(row, request).value();
      const int first = add(task, parent, q, q, tokens.size());
      Distribution rest = q;
      std::erase_if(rest.entries,
                    [&](const auto& e) { return e.id == task.draft[static_cast<size_t>(first)]; });
      for (auto& entry : rest.entries)
        entry.probability /= 1 - q.of(task.draft[static_cast<size_t>(first)]);
      if (std::cmp_less(task.draft.size(), task.max_tokens))
        add(task, parent, rest, q, tokens.size());
      tokens.push_back(task.draft[static_cast<size_t>(first)]);
      parent = first;
    }
  }
  static int add(DraftTask& task, int parent, const Distribution& from, const Distribution& q,
                 size_t position) {
    const auto index = static_cast<uint32_t>(task.draft.size());
    const double u = uniform(task.seed, task.choice, position, RandomUse::guess, index);
    task.q.push_back(q);
    return add_draft(task.draft, task.parents, from.draw(u), parent);
  }

  Sampler sampler_{kTokens};
};

TEST_F(GuessDistribution, WithoutGuessesAndWithCertainOnes) {
  for (const Filter& filter : filters()) {
    SCOPED_TRACE(filter.name);
    GuessRig plain(six_letters(), target());
    const auto all = plain.run(requests(filter, kAnswers));
    expect_distributed(all, filter);
    // Equal ones need no second look at their distribution.
    constexpr int kSome = 600;
    const std::vector<RequestOutput> some(all.begin(), all.begin() + kSome / kChoices);
    for (int k = 1; k <= 4; ++k) {
      std::vector<std::unique_ptr<Drafter>> drafters;
      drafters.push_back(std::make_unique<NgramDrafter>(1, 3));
      drafters.push_back(std::make_unique<SuffixDrafter>(SuffixOptions{}));
      drafters.push_back(draft_model(RejectionSampleMethod::strict));
      drafters.push_back(std::make_unique<OracleDrafter>(some, k - 1));
      for (auto& drafter : drafters) {
        SCOPED_TRACE(std::string(drafter->name()) + ", k = " + std::to_string(k));
        GuessRig rig(six_letters(), target(), std::move(drafter), k);
        const auto outputs = rig.run(requests(filter, kSome));
        for (size_t i = 0; i < outputs.size(); ++i)
          for (size_t c = 0; c < outputs[i].outputs.size(); ++c)
            ASSERT_EQ(outputs[i].outputs[c].token_ids, some[i].outputs[c].token_ids);
        EXPECT_GT(rig.stats().num_draft_tokens, 100);
      }
    }
  }
}

TEST_F(GuessDistribution, WithGuessesThatAreDrawn) {
  for (const Filter& filter : filters())
    for (int k = 1; k <= 4; ++k) {
      SCOPED_TRACE(filter.name + std::string(", k = ") + std::to_string(k));
      GuessRig rig(six_letters(), target(), draft_model(), k);
      expect_distributed(rig.run(requests(filter, kAnswers, seed_of(1, filter, k))), filter);
      EXPECT_GT(rig.stats().num_accepted_tokens, kAnswers * 6 / 10);
      EXPECT_LT(rig.stats().num_accepted_tokens, rig.stats().num_draft_tokens * 95 / 100);
    }
}

TEST_F(GuessDistribution, WithTreesOfThem) {
  for (const Filter& filter : filters()) {
    SCOPED_TRACE(filter.name);
    GuessRig rig(six_letters(), target(), std::make_unique<TreeDrafter>(), 4);
    expect_distributed(rig.run(requests(filter, kAnswers, seed_of(2, filter, 4))), filter);
    EXPECT_GT(rig.stats().num_accepted_tokens, kAnswers * 6 / 10);
  }
}

// Makes no guess after one whose second token was one of the first letters. Nobody drops a guess
// for what it is, but what was drawn before may decide: it does when the time that it took is
// measured.
class MoodyDrafter : public AroundDrafter {
 public:
  MoodyDrafter() : AroundDrafter(draft_model()) {}
  void propose(std::span<DraftTask* const> tasks) override {
    std::vector<DraftTask*> open;
    for (DraftTask* task : tasks)
      if (sulking_.erase(task->id) == 0) open.push_back(task);
    AroundDrafter::propose(open);
    for (const DraftTask* task : open)
      if (task->draft.size() > 1 && raw(task->draft[1]) < kFirst + 3) sulking_.insert(task->id);
  }

 private:
  std::set<SeqId> sulking_;
};

TEST_F(GuessDistribution, WhatWasGuessedBeforeMayDecide) {
  const Filter& filter = filters()[0];
  for (int k = 1; k <= 4; ++k) {
    SCOPED_TRACE(k);
    GuessRig rig(six_letters(), target(), std::make_unique<MoodyDrafter>(), k);
    expect_distributed(rig.run(requests(filter, kAnswers, seed_of(3, filter, k))), filter);
  }
}

// More guesses come true than with the answer's own numbers, and none of it is luck.
TEST_F(GuessDistribution, AnswersRepeatAndDifferFromStrictOnes) {
  const auto run = [](RejectionSampleMethod method) {
    GuessRig rig(six_letters(), target(), draft_model(method), 3);
    std::vector<std::vector<TokenId>> answers;
    for (const auto& output : rig.run(requests(filters()[0], 400)))
      for (const auto& choice : output.outputs) answers.push_back(choice.token_ids);
    return answers;
  };
  const auto drawn = run(RejectionSampleMethod::probabilistic);
  EXPECT_EQ(run(RejectionSampleMethod::probabilistic), drawn);
  EXPECT_NE(run(RejectionSampleMethod::strict), drawn);
}

// They came from another distribution than it says: one in which all tokens are as likely.
void lie(DraftTask& task) {
  for (Distribution& q : task.q)
    for (auto& entry : q.entries) entry.probability = 1.0 / static_cast<double>(q.entries.size());
}

// They were next to impossible, it says: whatever can be drawn at all is kept.
void keep_always(DraftTask& task) {
  for (Distribution& q : task.q)
    for (auto& entry : q.entries) entry.probability = 1e-12;
}

// The test sees rules that are wrong.
TEST_F(GuessDistribution, WrongRulesAreSeen) {
  const Filter& filter = filters()[0];
  for (const auto& bend : {lie, keep_always, drop_unlikely}) {
    GuessRig rig(six_letters(), target(), std::make_unique<BentDrafter>(draft_model(), bend), 2);
    expect_bent(rig.run(requests(filter, kManyAnswers)), filter);
  }
}

}  // namespace
}  // namespace octavo
