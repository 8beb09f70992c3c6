#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace octavo {
namespace {

constexpr int kBlock = 16;

std::vector<TokenId> tokens(int count, int from = 0) {
  std::vector<TokenId> out;
  for (int i = 0; i < count; ++i) out.push_back(TokenId{from + i});
  return out;
}

// A scheduler whose model says 7 after everything.
class Rig {
 public:
  explicit Rig(SchedulerOptions options = {}, int num_blocks = 64) {
    if (options.max_model_len == 0) options.max_model_len = 512;
    auto made = Scheduler::create(options, num_blocks, kBlock);
    EXPECT_TRUE(made) << made.error().message;
    scheduler = std::move(*made);
  }

  SeqId add(std::vector<TokenId> prompt, int max_new, int priority = 0, std::string salt = {}) {
    const auto id = scheduler->add({.tokens = std::move(prompt),
                                    .max_new_tokens = max_new,
                                    .key = {.salt = std::move(salt), .adapter = {}},
                                    .arrival_s = now,
                                    .priority = priority});
    EXPECT_TRUE(id) << id.error().message;
    left[*id] = max_new;
    return *id;
  }

  // The tokens computed in the step, by sequence.
  std::map<SeqId, int> step() {
    now += 1;
    const Step& s = scheduler->begin_step(now);
    std::map<SeqId, int> computed;
    std::vector<StepOutcome> outcomes;
    static const TokenId kSeven{7};
    for (const StepChunk& chunk : s.chunks) {
      computed[chunk.id] = static_cast<int>(chunk.tokens.size());
      if (!chunk.completes || chunk.padding) continue;
      const bool finished = --left[chunk.id] <= 0;
      outcomes.push_back({chunk.id, {&kSeven, 1}, finished});
    }
    scheduler->commit(outcomes, 0.01);
    const auto sound = scheduler->check();
    EXPECT_TRUE(sound) << sound.error().message;
    return computed;
  }
  int run_to_end(int pinned_blocks = 0) {
    int steps = 0;
    while (scheduler->has_work() && steps < 100'000) {
      EXPECT_FALSE(step().empty());
      ++steps;
    }
    EXPECT_EQ(scheduler->pool().num_held(), pinned_blocks);
    return steps;
  }

  std::unique_ptr<Scheduler> scheduler;
  std::map<SeqId, int> left;
  double now = 0;
};

TEST(Scheduler, WhatCannotFinishAloneIsRefusedAndTheNextIsServedAtOnce) {
  Rig rig({.max_model_len = 4096}, 8);  // 128 tokens
  for (const auto& [prompt, max_new] : {std::pair(200, 1), {100, 100}, {128, 2}}) {
    const auto refused =
        rig.scheduler->add({.tokens = tokens(prompt), .max_new_tokens = max_new, .key = {}});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
    EXPECT_NE(refused.error().message.find("128 tokens"), std::string::npos);
  }
  const SeqId whole = rig.add(tokens(128), 1);
  const SeqId b = rig.add(tokens(10, 500), 3);
  EXPECT_EQ(rig.step(), (std::map<SeqId, int>{{whole, 128}}));
  EXPECT_EQ(rig.step(), (std::map<SeqId, int>{{b, 10}}));
  rig.run_to_end();
}

TEST(Scheduler, StreamsGoOnWhileALongPromptIsRead) {
  Rig rig({.max_num_batched_tokens = 256}, 400);
  const SeqId stream = rig.add(tokens(5), 500);
  rig.step();
  const SeqId prompt = rig.add(tokens(500, 1000), 1);
  for (int i = 0; i < 2; ++i) {
    const auto computed = rig.step();
    EXPECT_EQ(computed.at(stream), 1);
    EXPECT_GE(computed.at(prompt), 245);
  }
  EXPECT_FALSE(rig.scheduler->is_running(prompt));
}

TEST(Scheduler, PromptsFoundInTheCacheAreNotComputedAgain) {
  Rig rig;
  for (const int length : {kBlock - 1, kBlock, kBlock + 1, 4 * kBlock}) {
    const std::string salt = std::to_string(length);
    rig.add(tokens(length), 1, 0, salt);
    rig.run_to_end();
    rig.add(tokens(length), 1, 0, salt);
    EXPECT_EQ(rig.step().begin()->second, 1) << length;  // the last token is always computed
    rig.add(tokens(length + 1), 1, 0, salt);
    EXPECT_EQ(rig.step().begin()->second, 1) << length;
    rig.add(tokens(length), 1, 0, "other" + salt);
    EXPECT_EQ(rig.step().begin()->second, length);
  }
}

TEST(Scheduler, AConversationGoesOnInItsOwnBlocks) {
  Rig rig;
  rig.add(tokens(20), 30);
  rig.run_to_end();
  std::vector<TokenId> turn = tokens(20);
  turn.insert(turn.end(), 30, TokenId{7});
  turn.insert(turn.end(), {TokenId{90}, TokenId{91}, TokenId{92}});
  rig.add(turn, 1);
  EXPECT_EQ(rig.step().begin()->second, 4);  // the answer's last token was never computed
}

TEST(Scheduler, EqualPromptsThatComeTogetherAreComputedOnce) {
  Rig rig({.max_num_batched_tokens = 512});
  for (int i = 0; i < 8; ++i) rig.add(tokens(200), 4);
  int computed = 0;
  while (rig.scheduler->has_work())
    for (const auto& [id, count] : rig.step()) computed += count;
  // The first reads all; the others find 192 tokens while it decodes, and then a partial block too.
  EXPECT_LE(computed, 200 + 7 * 8 + 8 * 3);
}

TEST(Scheduler, StatisticsCountEachRequestOnce) {
  Rig rig({.max_num_seqs = 8}, 20);
  for (int i = 0; i < 12; ++i) rig.add(tokens(60, i * 100), 40);
  rig.run_to_end();
  EXPECT_GT(rig.scheduler->stats().num_preemptions, 0);
  EXPECT_GT(rig.scheduler->stats().recomputed_tokens, 0);
  const PrefixStats& stats = rig.scheduler->prefix_tree().stats();
  EXPECT_EQ(stats.prompts.lookups, 12);
  EXPECT_EQ(stats.prompts.hit_tokens, 0);
  EXPECT_EQ(stats.recomputed.lookups, rig.scheduler->stats().num_preemptions);
}

TEST(Scheduler, ManyTimesThePoolLeavesNothingBehind) {
  Rig rig({}, 10);
  for (int i = 0; i < 100; ++i) {
    rig.add(tokens(1 + i % 70, i * 200), 1 + i % 20);
    if (i % 3 == 0) rig.run_to_end();
  }
  rig.run_to_end();
  EXPECT_GT(rig.scheduler->prefix_tree().stats().evicted_blocks, 50);
}

// Blocks reserved and never filled: less than a block for each sequence.
TEST(Scheduler, PagedWastesLessThanABlockAndContiguousNearlyAll) {
  const auto waste = [](KvCacheLayout layout) {
    Rig rig({.kv_layout = layout, .max_model_len = 512}, 128);
    for (int i = 0; i < 30; ++i) rig.add(tokens(60, i * 100), 8);
    double most_running = 0, reserved = 0, stored = 0;
    while (rig.scheduler->has_work()) {
      rig.step();
      const SchedulerStats stats = rig.scheduler->stats();
      most_running = std::max<double>(most_running, stats.num_running);
      reserved += static_cast<double>(stats.reserved_tokens);
      stored += static_cast<double>(stats.stored_tokens);
    }
    return std::pair(most_running, 1 - stored / reserved);
  };
  const auto [paged_running, paged_waste] = waste(KvCacheLayout::paged);
  const auto [contiguous_running, contiguous_waste] = waste(KvCacheLayout::contiguous);
  EXPECT_EQ(contiguous_running, 4);  // 2048 tokens, 512 each
  EXPECT_GE(paged_running, 3 * contiguous_running);
  EXPECT_LT(paged_waste, 0.2);
  EXPECT_GT(contiguous_waste, 0.8);
}

TEST(Scheduler, StaticBatchesComputeTheFinishedToTheEnd) {
  for (const bool pad : {true, false}) {
    Rig rig({.max_num_seqs = 3, .mode = SchedulingMode::static_batch, .pad_finished = pad});
    for (const int answer : {2, 9, 4, 2}) rig.add(tokens(10, answer * 50), answer);
    int rows = 0, steps = 0;
    bool fourth_ran = false;
    while (!fourth_ran) {
      const auto computed = rig.step();
      fourth_ran = computed.contains(SeqId{3});
      if (fourth_ran) break;
      ++steps;
      rows += static_cast<int>(computed.size());
    }
    EXPECT_EQ(steps, 9);  // as long as the longest
    EXPECT_EQ(rows, pad ? 27 : 2 + 9 + 4);
    rig.run_to_end();
  }
}

// However few tokens a step has, a batch has all the sequences it may have.
TEST(Scheduler, StaticBatchesFillOverSeveralSteps) {
  Rig rig({.max_num_seqs = 4, .max_num_batched_tokens = 16, .mode = SchedulingMode::static_batch});
  for (int i = 0; i < 6; ++i) rig.add(tokens(30, i * 50), 20);
  int most = 0;
  while (rig.scheduler->has_work() && most < 4) {
    rig.step();
    most = std::max(most, rig.scheduler->num_running());
  }
  EXPECT_EQ(most, 4);
  const int steps = rig.run_to_end();
  EXPECT_LT(steps, 70);
}

TEST(Scheduler, ForksShareThePromptAndFinishEachForItself) {
  Rig rig({.max_num_seqs = 3});
  const SeqId first = rig.add(tokens(40), 6);
  const Step& step = rig.scheduler->begin_step(1);
  ASSERT_TRUE(step.chunks[0].completes);
  std::vector<StepOutcome> outcomes;
  const std::vector<TokenId> drawn = tokens(4, 300);
  outcomes.push_back({first, std::span(drawn).first(1), false});
  for (size_t i = 1; i < 4; ++i) {
    const SeqId child = rig.scheduler->fork(first);
    rig.left[child] = 5;
    outcomes.push_back({child, std::span(drawn).subspan(i, 1), false});
    EXPECT_EQ(rig.scheduler->is_running(child), i < 3);  // the last waits for a place
  }
  rig.left[first] = 5;
  rig.scheduler->commit(outcomes, 0.01);
  ASSERT_TRUE(rig.scheduler->check());
  EXPECT_EQ(rig.scheduler->pool().num_held(), 3);  // 40 tokens, once
  const auto computed = rig.step();
  EXPECT_EQ(computed.size(), 3u);
  EXPECT_EQ(rig.scheduler->pool().num_held(), 5);  // each writes in a block of its own
  rig.run_to_end();
}

// The fork has no block of its own to give; without it the first needs no copy.
TEST(Scheduler, AStepThatPreemptsGoesOnToo) {
  for (const bool caches : {false, true}) {
    Rig rig({.max_num_seqs = 2, .enable_prefix_caching = caches}, 3);
    const SeqId first = rig.add(tokens(40), 6);
    ASSERT_TRUE(rig.scheduler->begin_step(1).chunks[0].completes);
    const SeqId child = rig.scheduler->fork(first);
    rig.left[first] = rig.left[child] = 5;
    const TokenId drawn{300};
    rig.scheduler->commit(
        std::vector<StepOutcome>{{first, {&drawn, 1}, false}, {child, {&drawn, 1}, false}}, 0.01);
    EXPECT_EQ(rig.step(), (std::map<SeqId, int>{{first, 1}}));
    EXPECT_EQ(rig.scheduler->stats().num_preemptions, 1);
    rig.run_to_end();
  }
}

TEST(Scheduler, PinnedPrefixesStay) {
  Rig rig({.max_model_len = 96}, 10);
  rig.add(tokens(33), 1);
  rig.run_to_end();
  const auto pinned = rig.scheduler->pin({}, tokens(32));
  ASSERT_TRUE(pinned);
  EXPECT_EQ(*pinned, 32);
  for (int i = 1; i < 20; ++i) rig.add(tokens(80, i * 100), 5);
  rig.run_to_end(2);
  rig.add(tokens(33), 1);
  EXPECT_EQ(rig.step().begin()->second, 1);
  // Pinning may not take the room of the longest sequence.
  rig.add(tokens(80, 5000), 1);
  rig.run_to_end(2);
  const auto too_much = rig.scheduler->pin({}, tokens(80, 5000));
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code, ErrorCode::resource_exhausted);
}

// Also if the next chunk is shorter than the one that came to nothing.
TEST(Scheduler, AnAbandonedStepIsDoneAgain) {
  Rig rig({.max_num_batched_tokens = 300});
  const SeqId a = rig.add(tokens(250), 2);
  EXPECT_EQ(rig.scheduler->begin_step(1).chunks[0].tokens.size(), 250u);
  rig.scheduler->abandon_step();
  EXPECT_TRUE(rig.scheduler->check());
  rig.scheduler->remove(a);
  const SeqId b = rig.add(tokens(250, 1000), 2), c = rig.add(tokens(200, 2000), 2);
  rig.scheduler->begin_step(2);
  rig.scheduler->abandon_step();
  EXPECT_EQ(rig.step(), (std::map<SeqId, int>{{b, 250}, {c, 50}}));
  EXPECT_EQ(rig.scheduler->begin_step(3).chunks.size(), 2u);
  rig.scheduler->abandon_step();
  rig.add(tokens(10), 1);
  rig.run_to_end();
}

// What is lent is back before the next plan, whatever that does.
TEST(Scheduler, BlocksAreLentForDrafts) {
  Rig rig({.max_model_len = 64, .enable_prefix_caching = false}, 4);
  const SeqId a = rig.add(tokens(14), 40);
  rig.step();
  ASSERT_EQ(rig.scheduler->decoding(), std::vector{a});  // 14 tokens computed, one drawn
  EXPECT_EQ(rig.scheduler->lend_blocks(a, 2).size(), 1u);
  EXPECT_EQ(rig.step(), (std::map<SeqId, int>{{a, 1}}));
  const auto lent = rig.scheduler->lend_blocks(a, 20);  // positions 15 to 34
  EXPECT_EQ(std::set(lent.begin(), lent.end()).size(), 3u);
  EXPECT_EQ(rig.scheduler->pool().num_free(), 1);
  EXPECT_TRUE(rig.scheduler->check());
  rig.step();
  EXPECT_EQ(rig.scheduler->num_blocks(a), 1);
  EXPECT_TRUE(rig.scheduler->lend_blocks(a, 49).empty());  // beyond the context
  EXPECT_EQ(rig.scheduler->lend_blocks(a, 48).size(), 4u);
  rig.scheduler->remove(a);
  EXPECT_EQ(rig.scheduler->pool().num_free(), 4);
  rig.scheduler->begin_step(99);
}

TEST(Scheduler, BlocksThatOthersNeedAreNotLent) {
  Rig rig({}, 6);
  rig.add(tokens(33), 1);
  rig.run_to_end();  // leaves two blocks in the cache, and a third that is not full
  EXPECT_EQ(rig.scheduler->pool().num_cached(), 3);
  const SeqId a = rig.add(tokens(10, 500), 5);
  rig.step();
  EXPECT_EQ(rig.scheduler->lend_blocks(a, 60).size(), 5u);  // evicts two
  EXPECT_EQ(rig.scheduler->pool().num_cached(), 1);
  rig.step();
  EXPECT_EQ(rig.scheduler->pool().num_free(), 4);
  const SeqId b = rig.add(tokens(33), 2);
  rig.step();
  EXPECT_TRUE(rig.scheduler->is_running(b));
  EXPECT_TRUE(rig.scheduler->lend_blocks(a, 60).empty());
  rig.run_to_end();
}

TEST(Scheduler, SharedBlocksAreNotLent) {
  Rig rig;
  const SeqId first = rig.add(tokens(40), 6);
  ASSERT_TRUE(rig.scheduler->begin_step(1).chunks[0].completes);
  const SeqId child = rig.scheduler->fork(first);
  rig.left[first] = rig.left[child] = 5;
  const TokenId drawn{300};
  rig.scheduler->commit(
      std::vector<StepOutcome>{{first, {&drawn, 1}, false}, {child, {&drawn, 1}, false}}, 0.01);
  EXPECT_TRUE(rig.scheduler->lend_blocks(first, 2).empty());
  EXPECT_TRUE(rig.scheduler->lend_blocks(child, 2).empty());
  rig.step();  // each has its own now
  EXPECT_EQ(rig.scheduler->lend_blocks(first, 2).size(), 3u);
  EXPECT_EQ(rig.scheduler->lend_blocks(child, 2).size(), 3u);
  rig.run_to_end();
}

TEST(Scheduler, RemovingWhatIsUnknownOrGoneDoesNothing) {
  Rig rig;
  const SeqId id = rig.add(tokens(40), 5);
  rig.scheduler->remove(SeqId{99});
  rig.step();
  rig.scheduler->remove(id);
  rig.scheduler->remove(id);
  EXPECT_FALSE(rig.scheduler->has_work());
  EXPECT_TRUE(rig.scheduler->begin_step(9).empty());
  EXPECT_EQ(rig.scheduler->pool().num_held(), 0);
}

TEST(Scheduler, OptionsThatCannotHoldAreRefused) {
  const auto refused = [](SchedulerOptions options) {
    options.max_model_len = 512;
    const auto made = Scheduler::create(options, 31, kBlock);
    return made ? std::string() : made.error().message;
  };
  EXPECT_NE(refused({.max_num_seqs = 100, .max_num_batched_tokens = 50}).find("raise"),
            std::string::npos);
  EXPECT_NE(refused({.kv_layout = KvCacheLayout::contiguous}).find("lower max_model_len to 496"),
            std::string::npos);
  EXPECT_EQ(refused({}), "");
}

}  // namespace
}  // namespace octavo
