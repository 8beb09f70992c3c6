#include "sim/simulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

namespace octavo {
namespace {

constexpr int kBlock = 16;

// Requests over prompts of their own.
class Cases {
 public:
  SimRequest& add(int prompt, int output, double arrival_s = 0, int first_token = -1) {
    std::vector<TokenId>& tokens = prompts_.emplace_back();
    const int from = first_token < 0 ? static_cast<int>(prompts_.size()) * 10'000 : first_token;
    for (int i = 0; i < prompt; ++i) tokens.push_back(TokenId{from + i});
    requests.push_back({.arrival_s = arrival_s, .prompt = tokens, .output_tokens = output});
    return requests.back();
  }
  std::vector<SimRequest> requests;

 private:
  std::deque<std::vector<TokenId>> prompts_;  // which do not move
};

SimOptions options(int num_blocks, SchedulerOptions scheduler = {}) {
  if (scheduler.max_model_len == 0) scheduler.max_model_len = num_blocks * kBlock + 1;
  return {.scheduler = scheduler,
          .num_blocks = num_blocks,
          .block_size = kBlock,
          .cost = {1, 0, 0, 0, 0}};  // a step takes a second
}

// To the end, looking at the bookkeeping after each step.
std::vector<SimRecord> run(Simulator& simulator) {
  for (int steps = 0;; ++steps) {
    const auto outcome = simulator.step();
    if (outcome == Simulator::Outcome::ended) break;
    EXPECT_NE(outcome, Simulator::Outcome::stalled);
    const auto sound = simulator.scheduler().check();
    EXPECT_TRUE(sound) << sound.error().message;
    if (steps > 100'000 || ::testing::Test::HasFailure()) break;
  }
  return {simulator.records().begin(), simulator.records().end()};
}

std::unique_ptr<Simulator> make(const Cases& cases, SimOptions given) {
  auto made = Simulator::create(std::move(given), cases.requests);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

std::vector<SimRecord> run(const Cases& cases, SimOptions given) {
  const auto simulator = make(cases, std::move(given));
  std::vector<SimRecord> records = run(*simulator);
  EXPECT_EQ(simulator->scheduler().pool().num_held(), 0);
  return records;
}

void expect_all_complete(const std::vector<SimRecord>& records, const Cases& cases) {
  for (size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].end, SimEnd::length) << i;
    EXPECT_EQ(std::ssize(records[i].token_s),
              cases.requests[i].n * cases.requests[i].output_tokens);
  }
}

TEST(StepCost, IsWhatTheFittedModelSays) {
  const StepCostFormula cost{.step = 0.004,
                             .prefill_token = 3e-4,
                             .kv_token = 2e-6,
                             .sequence = 8e-4,
                             .prefill_pair = 1e-7};
  StepTimeModel model;
  for (int i = 0; i < 3000; ++i) {
    StepWork work;
    if (i % 3 != 0) work.add_prefill(i % 5 * 200, 1 + i % 97);
    for (int k = 0; k < i % 8; ++k) work.add_decode(i % 11 * 300);
    model.observe(work, cost.seconds(work));
  }
  const StepCostFormula found = StepCostFormula::of(model);
  EXPECT_NEAR(found.step, cost.step, 0.01 * cost.step);
  EXPECT_NEAR(found.prefill_token, cost.prefill_token, 0.01 * cost.prefill_token);
  EXPECT_NEAR(found.kv_token, cost.kv_token, 0.01 * cost.kv_token);
  EXPECT_NEAR(found.sequence, cost.sequence, 0.01 * cost.sequence);
  EXPECT_NEAR(found.prefill_pair, cost.prefill_pair, 0.01 * cost.prefill_pair);
  EXPECT_EQ(StepCostFormula::of(StepTimeModel()), (StepCostFormula{0, 0, 0, 0, 0}));
}

TEST(Simulator, TimesAreThoseOfTheSteps) {
  Cases cases;
  cases.add(40, 3, 0.5);
  cases.add(100, 2, 0.6);
  SimOptions given = options(64, {.max_num_seqs = 4, .max_num_batched_tokens = 64});
  std::vector<int> prefill_tokens;
  given.on_step = [&](const SimStep& step) {
    prefill_tokens.push_back(step.step->work.prefill_tokens);
    EXPECT_EQ(step.step_s, 1);
  };
  const auto records = run(cases, given);
  EXPECT_EQ(records[0].token_s, (std::vector<double>{1.5, 2.5, 3.5}));
  EXPECT_EQ(records[0].scheduled_s, 0.5);
  EXPECT_EQ(records[1].scheduled_s, 1.5);  // arrived during the first step
  EXPECT_EQ(records[1].token_s, (std::vector<double>{3.5, 4.5}));
  EXPECT_EQ(records[1].end_s, 4.5);
  EXPECT_EQ(prefill_tokens, (std::vector<int>{40, 63, 37, 0}));
}

TEST(Simulator, MishapsEndOneRequestEach) {
  Cases cases;
  cases.add(20, 10).cancel_s = 2.5;
  cases.add(20, 10).cancel_after_tokens = 4;
  cases.add(20, 10).fails_at_token = 2;
  cases.add(20, 10, 3).cancel_s = 1;  // before it came
  cases.add(20, 10, 3);
  cases.add(20, 0, 3);
  const auto records = run(cases, options(64));
  EXPECT_EQ(records[0].end, SimEnd::cancelled);
  EXPECT_EQ(records[0].token_s.size(), 3u);  // those of the step on its way come
  EXPECT_EQ(records[0].end_s, 3);
  EXPECT_EQ(records[1].end, SimEnd::cancelled);
  EXPECT_EQ(records[1].token_s.size(), 4u);
  EXPECT_EQ(records[2].end, SimEnd::failed);
  EXPECT_EQ(records[2].token_s.size(), 2u);
  EXPECT_EQ(records[3].end, SimEnd::cancelled);
  EXPECT_FALSE(records[3].scheduled_s);
  EXPECT_EQ(records[4].token_s.size(), 10u);
  EXPECT_EQ(records[5].end, SimEnd::length);
  EXPECT_TRUE(records[5].token_s.empty());
}

TEST(Simulator, EqualSeedsGiveEqualRuns) {
  Cases cases;
  for (int i = 0; i < 30; ++i) cases.add(10 + i, 5, i);
  const auto ends = [&](uint64_t seed) {
    SimOptions given = options(12);
    given.noise = 0.3;
    given.abandoned_share = 0.2;
    given.seed = seed;
    std::vector<double> out;
    for (const SimRecord& record : run(cases, given)) out.push_back(record.end_s);
    return out;
  };
  EXPECT_EQ(ends(1), ends(1));
  EXPECT_NE(ends(1), ends(2));
}

TEST(Simulator, NoMoreAtOnceThanAsked) {
  Cases cases;
  for (int i = 0; i < 9; ++i) cases.add(20, 3);
  SimOptions given = options(64);
  given.max_concurrency = 3;
  const auto records = run(cases, given);
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(records[i].arrival_s, 3.0 * static_cast<double>(i / 3));
    EXPECT_EQ(records[i].end_s, 3.0 * static_cast<double>(i / 3) + 3);
  }
}

// --- tight pools ----------------------------------------------------------------------------

TEST(TightPool, APromptThatCanNeverFitIsRefusedAtOnceAndHoldsNobodyBack) {
  Cases cases;
  cases.add(200, 1);
  cases.add(100, 5);
  cases.add(120, 20);
  const auto records = run(cases, options(8));  // 128 tokens
  EXPECT_EQ(records[0].end, SimEnd::refused);
  EXPECT_EQ(records[0].end_s, 0);
  EXPECT_EQ(records[1].end, SimEnd::length);
  EXPECT_EQ(records[2].end, SimEnd::refused);  // its answer would not fit
}

TEST(TightPool, TwoHalfReadPromptsThatTogetherNeedMoreThanThereIs) {
  for (const int threshold : {0, 20}) {
    Cases cases;
    cases.add(100, 20);
    cases.add(100, 20);
    cases.add(60, 60);
    const auto records = run(cases, options(8, {.max_num_seqs = 4,
                                                .max_num_batched_tokens = 48,
                                                .long_prefill_token_threshold = threshold}));
    expect_all_complete(records, cases);
  }
}

// Every sequence needs a block in the same step and none is there.
TEST(TightPool, AllButTheFirstArePreemptedAtOnce) {
  Cases cases;
  for (int i = 0; i < 8; ++i) cases.add(kBlock, 2 * kBlock);
  int most_preempted = 0;
  SimOptions given = options(16, {.max_num_seqs = 8, .enable_prefix_caching = false});
  given.on_step = [&](const SimStep& step) {
    most_preempted = std::max(most_preempted, static_cast<int>(step.step->preempted.size()));
  };
  expect_all_complete(run(cases, given), cases);
  EXPECT_GE(most_preempted, 3);
  // With room for one only, whoever is not the first goes.
  given = options(3, {.max_num_seqs = 8});
  expect_all_complete(run(cases, given), cases);
}

TEST(TightPool, ExactlyOneSequenceOfAllBlocks) {
  for (const bool caches : {false, true})
    for (const int blocks : {1, 2, 5}) {
      Cases cases;
      // They begin alike: found prefixes end inside a block.
      for (int i = 0; i < 6; ++i) cases.add(blocks * kBlock - 7 - i, 8 + i, 0, 500);
      for (int i = 0; i < 3; ++i) cases.add(blocks * kBlock, 1, 0, 500);
      const auto records =
          run(cases, options(blocks, {.max_num_seqs = 4, .enable_prefix_caching = caches}));
      expect_all_complete(records, cases);
    }
}

TEST(TightPool, ChoicesOfOnePrompt) {
  for (const int blocks : {2, 3, 5, 9}) {
    Cases cases;
    cases.add(20, 12).n = 7;
    cases.add(9, 20).n = 5;
    cases.add(kBlock, kBlock).n = 3;
    const auto records = run(cases, options(blocks, {.max_num_seqs = 4}));
    expect_all_complete(records, cases);
  }
}

TEST(TightPool, PinnedPrefixesLeaveRoomForTheLongest) {
  Cases cases;
  cases.add(33, 1, 0, 500);
  for (int i = 0; i < 20; ++i) cases.add(60, 20, 100);
  cases.add(33, 1, 100, 500);
  const auto simulator = make(cases, options(7, {.max_num_seqs = 4, .max_model_len = 80}));
  while (simulator->records()[0].end == std::nullopt) simulator->step();
  ASSERT_EQ(simulator->scheduler().pin({}, cases.requests[0].prompt.first(32)), 32);
  const auto records = run(*simulator);
  expect_all_complete(records, cases);
  EXPECT_EQ(records.back().cached_tokens, 32);
  EXPECT_EQ(simulator->scheduler().pool().num_held(), 2);
}

// --- who waits for whom ---------------------------------------------------------------------

// A stream of better ones, more than can be served, does not starve the first.
TEST(Waiting, IsBoundedUnderEveryPolicy) {
  for (const auto policy :
       {SchedulingPolicy::fcfs, SchedulingPolicy::priority,
        SchedulingPolicy::shortest_prefill_first, SchedulingPolicy::longest_prefix_match}) {
    Cases cases;
    cases.add(40, 2, 0, 7000).priority = -1;  // fills the cache
    cases.add(300, 2, 1).priority = 9;
    for (int i = 0; i < 400; ++i) cases.add(40, 2, 0.5 * i, 7000);
    std::ranges::stable_sort(cases.requests, {}, &SimRequest::arrival_s);
    const auto victim = std::ranges::find(cases.requests, 9, &SimRequest::priority);
    const auto index = static_cast<size_t>(victim - cases.requests.begin());
    const auto scheduled = [&](double max_waiting_s) {
      return *run(cases, options(32, {.max_num_seqs = 1,
                                      .policy = policy,
                                      .max_waiting_s = max_waiting_s,
                                      .ageing_tokens_per_s = 0}))[index]
                  .scheduled_s;
    };
    EXPECT_LE(scheduled(50), 60);
    if (policy == SchedulingPolicy::fcfs) continue;
    EXPECT_GT(scheduled(0), 500);
  }
}

TEST(Waiting, TheUrgentPassesThoseWhoWaitAndIsPreemptedLast) {
  Cases cases;
  for (int i = 0; i < 6; ++i) cases.add(30, 60).priority = 5;
  cases.add(30, 60, 3).priority = 0;
  const auto records = run(
      cases,
      options(12, {.max_num_seqs = 4, .policy = SchedulingPolicy::priority, .max_waiting_s = 0}));
  expect_all_complete(records, cases);
  // Those who run are not stopped for it, but it takes the next place, and blocks if they are
  // short.
  EXPECT_EQ(records[6].preemptions, 0);
  for (size_t i = 4; i < 6; ++i) EXPECT_LT(*records[6].scheduled_s, *records[i].scheduled_s);
  int preemptions = 0;
  for (const SimRecord& record : records) preemptions += record.preemptions;
  EXPECT_GT(preemptions, 0);
}

TEST(Waiting, ThePreemptedComeBackBeforeNewOnes) {
  Cases cases;
  for (int i = 0; i < 4; ++i) cases.add(30, 60);
  for (int i = 0; i < 50; ++i) cases.add(30, 10, 1 + i);
  const auto records = run(cases, options(12, {.max_num_seqs = 4}));
  expect_all_complete(records, cases);
  int preempted = 0;
  for (size_t i = 0; i < 4; ++i) {
    preempted += records[i].preemptions > 0;
    for (size_t later = 12; later < records.size(); ++later)
      EXPECT_LT(records[i].end_s, records[later].end_s);
  }
  EXPECT_GT(preempted, 0);
}

// What a step looks at does not depend on how many wait.
TEST(Waiting, TenThousandDoNotSlowAStep) {
  for (const auto policy :
       {SchedulingPolicy::fcfs, SchedulingPolicy::priority,
        SchedulingPolicy::shortest_prefill_first, SchedulingPolicy::longest_prefix_match})
    for (const bool alike : {false, true}) {
      Cases cases;
      for (int i = 0; i < 10'000; ++i) cases.add(80, 20, 0, alike ? 500 : -1).priority = i % 7;
      SimOptions given =
          options(400, {.max_num_seqs = 16, .max_num_batched_tokens = 64, .policy = policy});
      given.scheduler.max_waiting_s = 20;  // most are over it
      int64_t before = 0, most = 0;
      given.on_step = [&](const SimStep& step) {
        const int64_t looked_at = step.scheduler->stats().num_candidates;
        most = std::max(most, looked_at - std::exchange(before, looked_at));
      };
      const auto simulator = make(cases, given);
      for (int i = 0; i < 60; ++i) ASSERT_EQ(simulator->step(), Simulator::Outcome::worked);
      EXPECT_GE(simulator->scheduler().num_waiting(), 9'000);
      EXPECT_LE(most, 600);
    }
}

}  // namespace
}  // namespace octavo
