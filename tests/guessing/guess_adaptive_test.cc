// The controller decides by what it has measured how much is guessed, and with that changes no
// probability. Nothing here is measured: a clock goes on by the work of the stubs.
#include <gtest/gtest.h>

#include <array>

#include "guessing/drafters.h"
#include "spec/ngram.h"

namespace octavo {
namespace {

using namespace testing;

// Tokens cost more and less in turns, as where others use the machine too, so that more and fewer
// guesses are worth it.
class WorkClock {
 public:
  void step(const ForwardBatch& batch) {
    const bool is_draft = !batch.skipped_layers.empty();
    steps_ += !is_draft;
    seconds_ += cost(batch) * (is_draft ? kDraft : 1);
  }
  void draft(const ForwardBatch& batch) { seconds_ += cost(batch) * kDraft; }
  double now() const { return seconds_; }

 private:
  static constexpr double kDraft = 0.03;  // of a step
  static constexpr int kPeriod = 400;     // steps

  double cost(const ForwardBatch& batch) const {
    const double phase = std::abs(1 - 2.0 * (steps_ % kPeriod) / kPeriod);  // 1 to 0 to 1
    return 8e-3 + 4e-6 * std::exp(5 * phase) * static_cast<double>(batch.tokens.size());
  }

  int64_t steps_ = 0;
  double seconds_ = 0;
};

// How many answers were to get a guess of at most so many tokens behind their second one, from
// which on most begin to be guessed: three are worth it there at most.
using Lengths = std::array<int, kLength - 2>;

class WatchedDrafter : public AroundDrafter {
 public:
  WatchedDrafter(std::unique_ptr<Drafter> inner, Lengths& lengths)
      : AroundDrafter(std::move(inner)), lengths_(lengths) {}
  void propose(std::span<DraftTask* const> tasks) override {
    for (const DraftTask* task : tasks)
      if (std::cmp_equal(task->tokens.size(), task->prompt_tokens + 2))
        ++lengths_[static_cast<size_t>(task->max_tokens)];
    AroundDrafter::propose(tasks);
  }

 private:
  Lengths& lengths_;
};

struct Outcome {
  std::vector<RequestOutput> outputs;
  Lengths lengths{};
};

Outcome run(const std::vector<Request>& requests, int k, bool exits_early) {
  Outcome outcome;
  WorkClock clock;
  GuessRig rig(
      six_letters(), target(), {.num_speculative_tokens = k, .clock = [&] { return clock.now(); }},
      [&](StubModel& model) {
        model.on_forward = [&](const ForwardBatch& batch) { clock.step(batch); };
        std::unique_ptr<Drafter> drafter;
        if (exits_early) {
          drafter = early_exit(model);
        } else {
          auto second = draft_model();
          second->model().on_forward = [&](const ForwardBatch& b) { clock.draft(b); };
          drafter = std::move(second);
        }
        return drafters_of(std::make_unique<WatchedDrafter>(std::move(drafter), outcome.lengths));
      });
  outcome.outputs = rig.run(requests);
  outcome.lengths[0] =
      kAnswers - std::accumulate(outcome.lengths.begin(), outcome.lengths.end(), 0);
  return outcome;
}

// Over all filters: each length is that of some of the answers.
void expect_all_lengths(const Lengths& lengths, int k) {
  const int all = std::accumulate(lengths.begin(), lengths.end(), 0);
  for (int length = 0; length <= std::min(k, kLength - 3); ++length)
    EXPECT_GT(lengths[static_cast<size_t>(length)], all / 200) << length;
}

TEST_F(GuessDistribution, Adaptive) {
  for (const bool exits_early : {false, true})
    for (int k = 1; k <= 4; ++k) {
      Lengths lengths{};
      for (const Filter& filter : filters()) {
        SCOPED_TRACE(std::string(exits_early ? "early exit, " : "draft model, ") + filter.name +
                     ", k = " + std::to_string(k));
        const auto seed = seed_of(5 + exits_early, filter, k);
        const Outcome outcome = run(requests(filter, kAnswers, seed), k, exits_early);
        expect_distributed(outcome.outputs, filter);
        for (size_t i = 0; i < lengths.size(); ++i) lengths[i] += outcome.lengths[i];
      }
      expect_all_lengths(lengths, k);
    }
}

}  // namespace
}  // namespace octavo
