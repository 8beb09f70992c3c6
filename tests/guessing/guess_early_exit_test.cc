// What the model itself says with layers skipped, as far as it is sure of it, changes no
// probability.
#include <gtest/gtest.h>

#include "guessing/drafters.h"

namespace octavo {
namespace {

using namespace testing;

// As many guesses as it is sure of.
SpeculatorOptions always(int k) { return {.num_speculative_tokens = k, .adaptive = false}; }

TEST_F(GuessDistribution, WithEarlyExit) {
  for (const Filter& filter : filters())
    for (int k = 1; k <= 4; ++k) {
      SCOPED_TRACE(filter.name + std::string(", k = ") + std::to_string(k));
      GuessRig rig(six_letters(), target(), always(k),
                   [](StubModel& model) { return drafters_of(early_exit(model)); });
      expect_distributed(rig.run(requests(filter, kAnswers, seed_of(4, filter, k))), filter);
      const SpeculatorStats& stats = rig.stats();
      EXPECT_GT(stats.num_accepted_tokens, kAnswers / 3);
      EXPECT_LT(stats.num_accepted_tokens, stats.num_draft_tokens * 95 / 100);
      // Sometimes it is not sure of the next one.
      if (k > 1) {
        EXPECT_LT(stats.num_draft_tokens, stats.num_drafts * k * 9 / 10);
      }
    }
}

// How many guesses there are depends on which they are: for one of them to be dropped because there
// is no second is to be dropped for what it is.
void drop_short(DraftTask& task) {
  if (task.draft.size() > 1) return;
  task.draft.clear();
  task.q.clear();
}

TEST_F(GuessDistribution, WrongRulesOfEarlyExitAreSeen) {
  const Filter& filter = filters()[0];
  for (const auto& bend : {drop_unlikely, drop_short}) {
    GuessRig rig(six_letters(), target(), always(2), [&](StubModel& model) {
      return drafters_of(std::make_unique<BentDrafter>(early_exit(model), bend));
    });
    expect_bent(rig.run(requests(filter, kManyAnswers)), filter);
  }
}

}  // namespace
}  // namespace octavo
