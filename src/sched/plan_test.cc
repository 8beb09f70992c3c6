#include "sched/plan.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

constexpr int kBlock = 16;

RunningView decoding(int id, int context, int releases = 1) {
  return {.id = SeqId{id},
          .num_tokens = context + 1,
          .num_computed = context,
          .num_blocks = (context + kBlock - 1) / kBlock,
          .releases = releases,
          .block_hashes = {}};
}

RunningView prefilling(int id, int num_tokens, int num_computed, int releases = 1) {
  RunningView view = decoding(id, num_computed, releases);
  view.num_tokens = num_tokens;
  return view;
}

WaitingView waiting(int id, int num_tokens, double arrival_s = 0, int num_cached = 0) {
  return {.id = SeqId{id},
          .num_tokens = num_tokens,
          .num_cached = num_cached,
          .arrival_s = arrival_s,
          .block_hashes = {}};
}

StepBudget budget(int max_num_batched_tokens = 100, int max_num_seqs = 8) {
  StepBudget b;
  b.max_num_seqs = max_num_seqs;
  b.max_num_batched_tokens = max_num_batched_tokens;
  return b;
}

StepPlan plan_of(const std::vector<RunningView>& running, const std::vector<WaitingView>& waiting,
                 const StepBudget& b, int free = 1000, double now_s = 0) {
  return plan({running, waiting, {kBlock, free, 0}, static_cast<int>(waiting.size())}, b, now_s);
}

using Chunks = std::vector<PlannedChunk>;

std::vector<int64_t> ids(const Chunks& chunks) {
  std::vector<int64_t> out;
  for (const PlannedChunk& c : chunks) out.push_back(raw(c.id));
  return out;
}

TEST(Plan, DecodesFirstThenWhatThePromptsCanHave) {
  const StepPlan p = plan_of({prefilling(1, 300, 40), decoding(2, 20), decoding(3, 30)},
                             {waiting(4, 10)}, budget(50));
  EXPECT_EQ(p.running, (Chunks{{SeqId{1}, 48}, {SeqId{2}, 1}, {SeqId{3}, 1}}));
  EXPECT_TRUE(p.admitted.empty());  // no token is left
  EXPECT_EQ(p.work.num_seqs, 2);
  EXPECT_EQ(p.work.kv_tokens, 21 + 31);
  EXPECT_EQ(p.work.prefill_tokens, 48);
}

TEST(Plan, SeveralPromptsShareTheBudgetInOrder) {
  const StepPlan p =
      plan_of({decoding(1, 5)}, {waiting(2, 30), waiting(3, 30), waiting(4, 30)}, budget(80));
  EXPECT_EQ(p.admitted, (Chunks{{SeqId{2}, 30}, {SeqId{3}, 30}, {SeqId{4}, 19}}));
}

TEST(Plan, ALongPromptLeavesRoomForOthers) {
  StepBudget b = budget(80);
  b.long_prefill_token_threshold = 40;
  const StepPlan p = plan_of({}, {waiting(2, 3000), waiting(3, 30)}, b);
  EXPECT_EQ(p.admitted, (Chunks{{SeqId{2}, 40}, {SeqId{3}, 30}}));
}

TEST(Plan, WholePromptsWaitForAStepThatHoldsThem) {
  StepBudget b = budget(80);
  b.whole_prompts = true;
  b.long_prefill_token_threshold = 10;  // does not cut them
  const StepPlan p = plan_of({}, {waiting(2, 50), waiting(3, 31), waiting(4, 5)}, b);
  EXPECT_EQ(p.admitted, (Chunks{{SeqId{2}, 50}}));  // in their order: nobody passes
  EXPECT_EQ(plan_of({}, {waiting(3, 31), waiting(4, 49)}, b).admitted,
            (Chunks{{SeqId{3}, 31}, {SeqId{4}, 49}}));
  // Of a step that came to nothing; one token alone is no reason to hold the others back.
  b.max_step_s = 1e-9;
  b.step_model.observe({.prefill_tokens = 10}, 1.0);
  EXPECT_EQ(plan_of({prefilling(1, 1, 0), prefilling(2, 79, 0)}, {}, b).running,
            (Chunks{{SeqId{1}, 1}, {SeqId{2}, 79}}));
}

TEST(Plan, NoMoreThanMaxNumSeqs) {
  const StepPlan p =
      plan_of({decoding(1, 5), decoding(2, 5)}, {waiting(3, 4), waiting(4, 4)}, budget(100, 3));
  EXPECT_EQ(ids(p.admitted), (std::vector<int64_t>{3}));
  EXPECT_FALSE(p.wants_more);
  EXPECT_TRUE(plan_of({}, {waiting(3, 4)}, budget(100, 3)).wants_more);
}

TEST(Plan, TheLastLoseTheirBlocksFirst) {
  // Each needs a block for its 17th position; two are free after the last is preempted.
  const std::vector<RunningView> running = {decoding(1, 16), decoding(2, 16), decoding(3, 16, 2)};
  StepPlan p = plan_of(running, {waiting(4, 4)}, budget(), 1);
  EXPECT_EQ(p.preempted, (std::vector<SeqId>{SeqId{3}}));
  EXPECT_EQ(ids(p.running), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(p.admitted.empty());  // not in a step that preempts
  EXPECT_EQ(p.work.num_seqs, 2);

  // The first always goes on, even if all others have to go.
  p = plan_of({decoding(1, 16), decoding(2, 16, 0), decoding(3, 16, 1)}, {}, budget(), 0);
  EXPECT_EQ(p.preempted, (std::vector<SeqId>{SeqId{3}}));
  EXPECT_EQ(ids(p.running), (std::vector<int64_t>{1}));  // 2 keeps what it has and waits
  EXPECT_EQ(p.work.num_seqs, 1);
  EXPECT_EQ(p.work.kv_tokens, 17);
}

TEST(Plan, AChunkShrinksToTheBlocksThereAre) {
  const StepPlan p = plan_of({prefilling(1, 200, 20)}, {}, budget(100), 2);
  EXPECT_EQ(p.running, (Chunks{{SeqId{1}, 2 * kBlock + 12}}));
}

TEST(Plan, AdmissionNeedsBlocksForAllTokensAndForGrowth) {
  // 5 blocks for the prompt and one for the sequence that runs.
  EXPECT_TRUE(plan_of({decoding(1, 5)}, {waiting(2, 80)}, budget(10), 5).admitted.empty());
  EXPECT_EQ(plan_of({decoding(1, 5)}, {waiting(2, 80)}, budget(10), 6).admitted.size(), 1u);
  // A prompt that has begun keeps what it still needs.
  StepBudget b = budget(30);
  b.long_prefill_token_threshold = 16;
  EXPECT_TRUE(plan_of({prefilling(1, 160, 16)}, {waiting(2, 10)}, b, 10).admitted.empty());
  EXPECT_EQ(plan_of({prefilling(1, 160, 16)}, {waiting(2, 10)}, b, 11).admitted.size(), 1u);
  // Nobody else runs: no reserve.
  EXPECT_EQ(plan_of({}, {waiting(2, 80)}, budget(10), 5).admitted.size(), 1u);
}

TEST(Plan, WhoeverDoesNotFitHoldsTheOthersBack) {
  const StepPlan p = plan_of({}, {waiting(1, 400), waiting(2, 16)}, budget(), 20);
  EXPECT_TRUE(p.admitted.empty());
}

TEST(Plan, CachedTokensAreNotComputedAndTheirBlocksAreNotFreeTwice) {
  WaitingView w = waiting(1, 80, 0, 64);
  w.cached_only = 4;
  StepPlan p = plan({{}, {&w, 1}, {kBlock, 0, 5}}, budget(), 0);
  EXPECT_EQ(p.admitted, (Chunks{{SeqId{1}, 16}}));  // 4 of the 5 are its own, 1 for the rest
  p = plan({{}, {&w, 1}, {kBlock, 0, 4}}, budget(), 0);
  EXPECT_TRUE(p.admitted.empty());
}

TEST(Plan, WhatIsBeingComputedIsWaitedFor) {
  const std::vector<uint64_t> a = {1, 2, 3}, b = {1, 9, 8};
  WaitingView first = waiting(1, 60), second = waiting(2, 60), third = waiting(3, 60, 0, 16);
  first.block_hashes = a;
  second.block_hashes = b;
  third.block_hashes = b;
  const StepPlan p = plan_of({}, {first, second, third}, budget(200));
  EXPECT_EQ(ids(p.admitted), (std::vector<int64_t>{1, 3}));  // the second's first block comes
  // But nobody lets others pass for ever.
  StepBudget bounded = budget(200);
  bounded.max_waiting_s = 10;
  EXPECT_EQ(ids(plan_of({}, {first, second, third}, bounded, 1000, 11).admitted),
            (std::vector<int64_t>{1, 2, 3}));
}

TEST(Plan, Policies) {
  std::vector<WaitingView> w = {waiting(1, 90, 1), waiting(2, 50, 2, 10), waiting(3, 60, 3, 55)};
  w[0].priority = 5;
  w[1].priority = -1;
  w[2].priority = 5;
  StepBudget b = budget(1000);
  const auto order = [&](SchedulingPolicy policy) {
    b.policy = policy;
    return ids(plan_of({}, w, b).admitted);
  };
  EXPECT_EQ(order(SchedulingPolicy::fcfs), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(order(SchedulingPolicy::priority), (std::vector<int64_t>{2, 1, 3}));
  EXPECT_EQ(order(SchedulingPolicy::shortest_prefill_first), (std::vector<int64_t>{3, 2, 1}));
  EXPECT_EQ(order(SchedulingPolicy::longest_prefix_match), (std::vector<int64_t>{3, 2, 1}));
  b.ageing_tokens_per_s = 1000;  // a second of waiting counts as so many tokens
  EXPECT_EQ(order(SchedulingPolicy::shortest_prefill_first), (std::vector<int64_t>{1, 2, 3}));
}

TEST(Plan, NobodyWaitsForEver) {
  std::vector<WaitingView> w = {waiting(1, 90, 1), waiting(2, 5, 50), waiting(3, 5, 51)};
  w[0].priority = 9;
  StepBudget b = budget(1000, 1);
  b.max_waiting_s = 40;
  for (const auto policy : {SchedulingPolicy::priority, SchedulingPolicy::shortest_prefill_first}) {
    b.policy = policy;
    EXPECT_EQ(ids(plan_of({}, w, b, 1000, 41).admitted), (std::vector<int64_t>{2}));
    EXPECT_EQ(ids(plan_of({}, w, b, 1000, 41.5).admitted), (std::vector<int64_t>{1}));
  }
}

TEST(Plan, StaticBatchesFillOnlyWhenAllIsDone) {
  StepBudget b = budget();
  EXPECT_EQ(plan_of({}, {waiting(2, 4), waiting(3, 4)}, b).admitted.size(), 2u);
  b.admits = false;
  EXPECT_TRUE(plan_of({decoding(1, 5)}, {waiting(2, 4)}, b).admitted.empty());
}

// 1 ms a prefill token, 5 ms a sequence.
StepTimeModel known_model() {
  StepTimeModel model;
  for (int i = 0; i < 400; ++i) {
    StepWork work;
    if (i % 3 != 0) work.add_prefill(0, 1 + i % 50);
    for (int k = 0; k < i % 4; ++k) work.add_decode(i % 7 * 100);
    const double s = 0.001 * work.prefill_tokens + 0.005 * work.num_seqs + 0.002;
    model.observe(work, s);
  }
  return model;
}

TEST(Plan, PromptsAreCutToTheTimeOthersWait) {
  StepBudget b = budget(1000);
  b.max_step_s = 0.100;
  b.step_model = known_model();
  const auto prefill = [&](const std::vector<RunningView>& running) {
    return plan_of(running, {waiting(9, 800)}, b).work.prefill_tokens;
  };
  EXPECT_EQ(prefill({}), 800);                     // nobody waits
  EXPECT_NEAR(prefill({decoding(1, 50)}), 88, 1);  // 95 ms less 2 and 5
  EXPECT_NEAR(prefill({decoding(1, 50), decoding(2, 50), decoding(3, 50)}), 78, 1);
  b.max_step_s = 0.001;
  EXPECT_EQ(prefill({decoding(1, 50)}), 8);  // however late, the prompt moves on
  b.step_model = {};
  EXPECT_EQ(prefill({decoding(1, 50)}), 8);  // nothing is known yet
}

TEST(Plan, PromptsGetNoMoreOfAStepThanAnswers) {
  StepBudget b = budget(1000);
  b.max_prefill_ratio = 1;
  const auto prefill = [&](const std::vector<RunningView>& running, int num_prompts) {
    std::vector<WaitingView> prompts;
    for (int i = 0; i < num_prompts; ++i) prompts.push_back(waiting(10 + i, 800));
    return plan_of(running, prompts, b).work.prefill_tokens;
  };
  const std::vector<RunningView> four = {decoding(1, 50), decoding(2, 50), decoding(3, 50),
                                         decoding(4, 50)};
  EXPECT_EQ(prefill(four, 1), 800);  // nothing is known yet
  b.step_model = known_model();
  EXPECT_EQ(prefill({}, 1), 800);        // nobody waits
  EXPECT_NEAR(prefill(four, 1), 22, 1);  // as long as 2 ms and 4 times 5
  EXPECT_NEAR(prefill(four, 2), 44, 1);  // more than one prompt for four answers
  EXPECT_NEAR(prefill(four, 6), 132, 1);
  b.max_prefill_ratio = 0.5;
  EXPECT_NEAR(prefill(four, 1), 11, 1);
  b.max_prefill_ratio = 1;
  b.max_step_s = 0.035;
  EXPECT_NEAR(prefill(four, 6), 11, 1);
}

}  // namespace
}  // namespace octavo
