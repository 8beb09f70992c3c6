// Guesses that are looked up, alone and before a draft model's, change no probability.
#include <gtest/gtest.h>

#include "guessing/drafters.h"
#include "spec/ngram.h"
#include "spec/prediction.h"
#include "spec/suffix.h"

namespace octavo {
namespace {

using namespace testing;

constexpr int kGuesses = 4;

// Some text of the language, that is nobody's answer.
std::shared_ptr<const std::vector<TokenId>> prediction() {
  std::vector<TokenId> text;
  for (uint64_t i = 0; i < 400; ++i)
    text.push_back(TokenId{kFirst + static_cast<int>(6 * uniform(77, 0, i))});
  return std::make_shared<const std::vector<TokenId>>(std::move(text));
}

struct Lookup {
  const char* name;
  std::unique_ptr<Drafter> (*make)();
};

const Lookup kLookups[] = {
    {"ngram", [] { return std::unique_ptr<Drafter>(new NgramDrafter(1, 3)); }},
    {"suffix", [] { return std::unique_ptr<Drafter>(new SuffixDrafter({})); }},
    {"suffix, branches",
     [] {
       return std::unique_ptr<Drafter>(
           new SuffixDrafter({.min_token_prob = 0.01, .branching_factor = 3}));
     }},
    {"prediction", [] { return std::unique_ptr<Drafter>(new PredictionDrafter()); }},
};

// Their guesses are certain: one way of verifying them is all there is.
TEST_F(GuessDistribution, WithLookups) {
  for (const Lookup& lookup : kLookups)
    for (const Filter& filter : filters()) {
      SCOPED_TRACE(lookup.name + std::string(", ") + filter.name);
      GuessRig rig(six_letters(), target(), lookup.make(), kGuesses);
      auto all =
          requests(filter, kAnswers,
                   seed_of(10 + static_cast<uint64_t>(&lookup - kLookups), filter, kGuesses));
      for (Request& request : all) request.prediction = prediction();
      expect_distributed(rig.run(all), filter);
      EXPECT_GT(rig.stats().num_accepted_tokens, kAnswers / 10);
    }
}

// Certain guesses and drawn ones in the same steps, and in the same answers.
TEST_F(GuessDistribution, WithLookupsBeforeADraftModel) {
  for (const auto method : {RejectionSampleMethod::strict, RejectionSampleMethod::probabilistic})
    for (const Filter& filter : filters()) {
      SCOPED_TRACE(filter.name +
                   std::string(method == RejectionSampleMethod::strict ? ", strict" : ""));
      GuessRig rig(six_letters(), target(), {.num_speculative_tokens = kGuesses, .adaptive = false},
                   [&](StubModel&) {
                     return drafters_of(std::make_unique<PredictionDrafter>(),
                                        std::make_unique<NgramDrafter>(3, 3), draft_model(method));
                   });
      auto all = requests(filter, kAnswers, seed_of(20 + static_cast<uint64_t>(method), filter, 4));
      for (size_t i = 0; i < all.size(); i += 2) all[i].prediction = prediction();
      expect_distributed(rig.run(all), filter);
      EXPECT_GT(rig.stats().num_accepted_tokens, kAnswers / 2);
    }
}

}  // namespace
}  // namespace octavo
