#include "kv/prefix_tree.h"

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "kv/test_cache.h"

namespace octavo {
namespace {

static_assert(!std::is_copy_constructible_v<PrefixTree::Pin>);
static_assert(std::is_nothrow_move_constructible_v<PrefixTree::Pin>);
static_assert(!std::is_move_constructible_v<PrefixTree>);

// A sequence that has computed all its tokens and shown its full blocks to the tree.
TestSequence running(TestCache& cache, std::string_view runs, const PrefixKey& key = {}) {
  TestSequence sequence = cache.start(key, tokens_from(runs));
  EXPECT_TRUE(cache.compute(sequence, static_cast<int>(sequence.tokens.size())));
  cache.insert(sequence);
  return sequence;
}

void finish(TestCache& cache, TestSequence sequence) { cache.insert(sequence, true); }

int found(const TestCache& cache, std::string_view runs, const PrefixKey& key = {}) {
  return cache.tree->lookup(key, tokens_from(runs)).num_tokens;
}

TEST(PrefixTree, AnEmptyTreeFindsNothing) {
  TestCache cache(4);
  for (const char* runs : {"", "A1", "A16", "A40"}) {
    const PrefixMatch match = cache.tree->acquire({}, tokens_from(runs));
    EXPECT_TRUE(match.blocks.empty());
    EXPECT_EQ(match.num_tokens, 0);
    EXPECT_EQ(match.miss, tokens_from(runs).size() < 2 ? MissReason::none : MissReason::not_seen);
  }
  EXPECT_EQ(cache.tree->evict(4), 0);
  cache.expect_sound({});
}

TEST(PrefixTree, KeepsWhatASequenceLeaves) {
  TestCache cache(8);
  EXPECT_EQ(cache.run("A16 B16 C5"), 0);
  EXPECT_EQ(cache.draw(), R"(
A16
  B16
    C5
)");
  EXPECT_EQ(cache.pool->num_cached(), 3);
  EXPECT_EQ(cache.pool->num_held(), 0);

  EXPECT_EQ(cache.run("A16 B16 D20"), 32);
  EXPECT_EQ(cache.draw(), R"(
A16
  B16
    C5
    D16
      D4
)");
  EXPECT_EQ(cache.pool->num_cached(), 5);
}

TEST(PrefixTree, IsSharedWhileTheFirstSequenceRuns) {
  TestCache cache(8);
  TestSequence first = running(cache, "A16 B16 C5");
  EXPECT_EQ(cache.draw(), R"(
A16 *
  B16 *
)");
  TestSequence second = running(cache, "A16 B16 D5");
  EXPECT_EQ(second.num_found, 32);
  EXPECT_EQ(cache.pool->num_held(), 4);  // A B C, and D
  EXPECT_EQ(cache.pool->num_cached(), 0);
  EXPECT_EQ(first.table.num_unshared(), 1);  // C alone: the rest is the second's too

  finish(cache, std::move(first));
  EXPECT_EQ(cache.draw(), R"(
A16 *
  B16 *
    C5
)");
  EXPECT_EQ(second.table.num_unshared(), 3);  // A and B become cached, D free
  cache.expect_sound({&second, 1});
}

TEST(PrefixTree, BlocksWrittenWhileDecodingAreFoundToo) {
  TestCache cache(8);
  TestSequence sequence = running(cache, "A20");
  for (int i = 0; i < 30; ++i) {
    sequence.tokens.push_back(TokenId{'B'});
    ASSERT_TRUE(cache.compute(sequence, static_cast<int>(sequence.tokens.size())));
    cache.insert(sequence);
    cache.expect_sound({&sequence, 1});
  }
  EXPECT_EQ(cache.draw(), R"(
A16 *
  A4 B12 *
    B16 *
)");
  finish(cache, std::move(sequence));
  EXPECT_EQ(cache.run("A20 B30 C9"), 50);  // the next turn of a conversation
}

TEST(PrefixTree, FindsAnyLengthAndCopiesWhatItGoesOnFrom) {
  TestCache cache(8);
  cache.run("A16 B16");
  for (const auto& [runs, tokens, blocks] : {std::tuple{"A7 C1", 7, 1},
                                             {"A16 C1", 16, 1},
                                             {"A16 B1 C9", 17, 2},
                                             {"A16 B15 C1", 31, 2},
                                             {"A16 B16 C1", 32, 2},
                                             {"C16", 0, 0}}) {
    const auto result = cache.tree->lookup({}, tokens_from(runs));
    EXPECT_EQ(result.num_tokens, tokens) << runs;
    EXPECT_EQ(result.num_blocks, blocks) << runs;
    EXPECT_EQ(result.num_cached_only, blocks) << runs;
  }

  TestSequence sequence = cache.start({}, tokens_from("A16 B7 C3"));
  EXPECT_EQ(cache.draw(), R"(
A16 *
  B16 *
)");
  EXPECT_EQ(cache.tree->lookup({}, tokens_from("A16 B7 C3")).num_cached_only, 0);
  EXPECT_EQ(sequence.table.blocks_to_reserve(26), 1);
  ASSERT_TRUE(cache.compute(sequence, 26));  // seven positions are copied, three computed
  cache.expect_sound({&sequence, 1});
  EXPECT_EQ(cache.draw(), R"(
A16 *
  B16
)");
  finish(cache, std::move(sequence));
  EXPECT_EQ(cache.draw(), R"(
A16
  B16
  B7 C3
)");
}

TEST(PrefixTree, NeverCoversTheLastTokenOfAPrompt) {
  constexpr int kSize = TestCache::kBlockSize;
  for (int length : {1, 2, kSize - 1, kSize, kSize + 1, 4 * kSize}) {
    TestCache cache(12);
    const std::string prompt = "A" + std::to_string(length);
    EXPECT_EQ(cache.run(prompt), 0);
    EXPECT_EQ(cache.run(prompt), length - 1) << length;
    EXPECT_EQ(cache.run(prompt), length - 1) << length;
    EXPECT_EQ(cache.run(prompt + " B1"), length) << length;
    EXPECT_EQ(cache.tree->stats().misses[0], length == 1 ? 4 : 3) << "nothing was missing";
  }
}

TEST(PrefixTree, ALongerBlockTakesThePlaceOfAnUnfinishedOne) {
  TestCache cache(8);
  cache.run("A16 B5");
  cache.run("A16 B5 C5");
  EXPECT_EQ(cache.draw(), R"(
A16
  B5 C5
)");
  cache.run("A16 B5 C20");
  EXPECT_EQ(cache.draw(), R"(
A16
  B5 C11
    C9
)");
  cache.run("A16 B3");  // covered
  EXPECT_EQ(cache.draw(), R"(
A16
  B5 C11
    C9
)");
  EXPECT_EQ(cache.pool->num_cached(), 3);
  EXPECT_EQ(cache.tree->stats().evicted_blocks, 0);
}

// Two equal prompts are computed side by side: each in its own blocks.
TEST(PrefixTree, TwinsEndUpInTheSameBlocks) {
  for (bool first_ends_first : {true, false}) {
    TestCache cache(12);
    TestSequence twins[] = {cache.start({}, tokens_from("A16 B16 C5")),
                            cache.start({}, tokens_from("A16 B16 C5"))};
    for (TestSequence& twin : twins) ASSERT_TRUE(cache.compute(twin, 37));
    EXPECT_EQ(cache.pool->num_held(), 6);

    for (TestSequence& twin : twins) cache.insert(twin);
    cache.expect_sound(twins);
    EXPECT_EQ(cache.pool->num_held(), 4);  // A and B once, C twice
    EXPECT_EQ(twins[0].table.block_ids()[1], twins[1].table.block_ids()[1]);
    EXPECT_NE(twins[0].table.block_ids()[2], twins[1].table.block_ids()[2]);

    const int order[] = {first_ends_first ? 0 : 1, first_ends_first ? 1 : 0};
    finish(cache, std::move(twins[order[0]]));
    EXPECT_EQ(cache.draw(), R"(
A16 *
  B16 *
    C5
)");
    EXPECT_EQ(cache.tree->evict(12), 1);
    cache.expect_sound({&twins[order[1]], 1});
    finish(cache, std::move(twins[order[1]]));
    EXPECT_EQ(cache.draw(), R"(
A16
  B16
    C5
)");
    EXPECT_EQ(cache.pool->num_cached(), 3);
    EXPECT_EQ(cache.pool->num_held(), 0);
    EXPECT_EQ(cache.run("A16 B16 C5 D1"), 37);
  }
}

TEST(PrefixTree, AForkSharesWhatWasInsertedBefore) {
  TestCache cache(8);
  TestSequence parent = running(cache, "A16 B20");
  TestSequence child{parent.key, tokens_from("A16 B20 C4"), parent.table.fork()};
  ASSERT_TRUE(cache.compute(child, 40));
  finish(cache, std::move(child));
  EXPECT_EQ(cache.draw(), R"(
A16 *
  B16 *
    B4 C4
)");
  finish(cache, std::move(parent));
  EXPECT_EQ(cache.pool->num_cached(), 3);
  cache.expect_sound({});
}

// The fork has a block A of its own before B. If the tree took B from the parent, the fork would
// use it without using the A in the tree.
TEST(PrefixTree, BlocksOfAForkThatWasNotInsertedWait) {
  TestCache cache(8);
  cache.run("A16");
  TestSequence parent{{}, tokens_from("A16 B16"), BlockTable(*cache.pool)};
  ASSERT_TRUE(cache.compute(parent, 32));
  TestSequence child{parent.key, parent.tokens, parent.table.fork()};
  finish(cache, std::move(parent));
  EXPECT_EQ(cache.draw(), R"(
A16
)");
  cache.expect_sound({&child, 1});
  EXPECT_EQ(cache.pool->num_cached(), 1);
  finish(cache, std::move(child));
  EXPECT_EQ(cache.draw(), R"(
A16
  B16
)");
  EXPECT_EQ(cache.pool->num_held(), 0);
  cache.expect_sound({});
}

TEST(PrefixTree, ARefusedInsertionLeavesNoTrace) {
  TestCache cache(8);
  TestSequence parent{{"salt", ""}, tokens_from("A16 B16"), BlockTable(*cache.pool)};
  ASSERT_TRUE(cache.compute(parent, 32));
  const TestSequence child{parent.key, parent.tokens, parent.table.fork()};
  cache.insert(parent, true);
  EXPECT_EQ(cache.tree->num_nodes(), 0);
  EXPECT_TRUE(cache.tree->check());
}

TEST(PrefixTree, TwinsThatEndWithoutShowingAnythingLeaveTheTreeAlone) {
  TestCache cache(12);
  cache.run("A32");
  {
    TestSequence aborted = cache.start({}, tokens_from("A48"));
    ASSERT_TRUE(cache.compute(aborted, 40));
  }
  EXPECT_EQ(cache.draw(), R"(
A16
  A16
)");
  EXPECT_EQ(cache.pool->num_held(), 0);
  cache.expect_sound({});
}

TEST(PrefixTree, EvictsTheLeastRecentlyUsedLeafFirst) {
  TestCache cache(8);
  cache.run("A16 B16");
  cache.run("A16 C16");
  cache.run("D16");
  cache.run("A16 B16 E4");
  EXPECT_EQ(cache.draw(), R"(
A16
  B16
    E4
  C16
D16
)");
  EXPECT_EQ(cache.tree->evict(1), 1);
  EXPECT_EQ(cache.tree->evict(1), 1);
  EXPECT_EQ(cache.draw(), R"(
A16
  B16
    E4
)");
  EXPECT_EQ(cache.tree->evict(2), 2);
  EXPECT_EQ(cache.draw(), R"(
A16
)");
  EXPECT_EQ(cache.tree->evict(2), 1);
  EXPECT_EQ(cache.draw(), "\n");
  EXPECT_EQ(cache.tree->stats().evicted_blocks, 5);
  EXPECT_EQ(cache.pool->num_free(), 8);
  cache.expect_sound({});
}

TEST(PrefixTree, ABranchGoesAsAWholeBeforeAnotherIsTouched) {
  TestCache cache(8);
  cache.run("A48");
  cache.run("B48");
  EXPECT_EQ(cache.tree->evict(4), 4);
  EXPECT_EQ(cache.draw(), R"(
B16
  B16
)");
}

TEST(PrefixTree, WithoutItsFirstBlockNothingIsFound) {
  TestCache cache(8);
  cache.run("A16 B16 C16");
  EXPECT_EQ(cache.tree->evict(1), 1);  // never the first block: C goes
  EXPECT_EQ(found(cache, "A16 B16 C16"), 32);
  EXPECT_EQ(cache.tree->evict(2), 2);
  EXPECT_EQ(found(cache, "A16 B16 C16"), 0);
  EXPECT_EQ(cache.tree->num_nodes(), 0);
}

TEST(PrefixTree, WhatIsUsedIsNotEvicted) {
  TestCache cache(8);
  TestSequence oldest = running(cache, "A16 B16");
  cache.run("A16 C16");
  cache.run("D16");
  EXPECT_EQ(cache.pool->num_cached(), 2);
  EXPECT_EQ(cache.tree->evict(8), 2);
  EXPECT_EQ(cache.draw(), R"(
A16 *
  B16 *
)");
  cache.expect_sound({&oldest, 1});
  finish(cache, std::move(oldest));
  EXPECT_EQ(cache.tree->evict(8), 2);
}

TEST(PrefixTree, LfuKeepsWhatIsUsedOften) {
  TestCache cache(8, EvictionPolicy::lfu);
  TestCache lru(8, EvictionPolicy::lru);
  for (TestCache* each : {&cache, &lru}) {
    for (const char* runs : {"A20", "A20", "A20", "B20", "C20"}) each->run(runs);
    EXPECT_EQ(each->draw(), R"(
A16
  A4
B16
  B4
C16
  C4
)");
    EXPECT_EQ(each->tree->evict(2), 2);
  }
  EXPECT_EQ(cache.draw(), R"(
A16
  A4
C16
  C4
)");
  EXPECT_EQ(lru.draw(), R"(
B16
  B4
C16
  C4
)");
}

TEST(PrefixTree, KeysShareNothing) {
  const PrefixKey keys[] = {{}, {"X", ""}, {"", "X"}, {"Y", ""}, {"XY", ""}, {"X", "Y"}};
  TestCache cache(16);
  for (const PrefixKey& key : keys) {
    EXPECT_EQ(cache.run("A20", key), 0);
    EXPECT_EQ(cache.run("A20", key), 19);
  }
  EXPECT_EQ(cache.tree->num_nodes(), 12);
  EXPECT_EQ(cache.tree->evict(100), 12);
  for (const PrefixKey& key : keys) EXPECT_EQ(found(cache, "A20", key), 0);
}

TEST(PrefixTree, NothingIsLeftOverAfterManyDistinctPrompts) {
  constexpr int kBlocks = 6;
  TestCache cache(kBlocks);
  for (int i = 0; i < 10 * kBlocks; ++i) {
    const std::string prompt = std::string(1, static_cast<char>(33 + i)) + "20 A10";
    if (i % 3 == 0) {
      TestSequence aborted = cache.start({}, tokens_from(prompt));
      ASSERT_TRUE(cache.compute(aborted, 30));
    } else {
      EXPECT_EQ(cache.run(prompt), 0);
    }
    cache.expect_sound({});
  }
  EXPECT_EQ(cache.pool->num_held(), 0);
  EXPECT_GT(cache.tree->stats().evicted_blocks, 8 * kBlocks);
}

TEST(PrefixTree, APinKeepsAPrefix) {
  TestCache cache(8);
  cache.run("A16 B5");
  {
    PrefixTree::Pin pin = cache.tree->pin({}, tokens_from("A16 B5"));
    EXPECT_EQ(pin.num_tokens(), 21);
    cache.run("A16 B5 C20");
    EXPECT_EQ(cache.draw(), R"(
A16 *
  B5 *
  B5 C11
    C9
)");
    cache.expect_sound({}, {&pin, 1});
    EXPECT_EQ(cache.tree->evict(8), 2);
    const PrefixTree::Pin moved = std::move(pin);
    EXPECT_EQ(cache.tree->evict(8), 0);
    EXPECT_EQ(cache.run("A16 B5"), 20);
  }
  EXPECT_EQ(cache.tree->evict(8), 2);
  EXPECT_EQ(cache.tree->pin({}, tokens_from("A16 B5")).num_tokens(), 0);
}

TEST(PrefixTree, ALeafThatIsForgottenBelongsToItsUserAlone) {
  TestCache cache(2);
  cache.run("A16 B16");
  TestSequence sequence = cache.start({}, tokens_from("A16 B5 C5"));
  EXPECT_EQ(cache.tree->evict(1), 0);
  EXPECT_EQ(sequence.table.blocks_to_reserve(26), 1);  // a copy, but there is no room for one
  ASSERT_TRUE(sequence.table.is_last_user(1));
  cache.tree->forget(sequence.table.block_ids()[1]);
  EXPECT_EQ(cache.draw(), R"(
A16 *
)");
  EXPECT_EQ(sequence.table.blocks_to_reserve(26), 0);
  ASSERT_TRUE(cache.compute(sequence, 26));
  cache.expect_sound({&sequence, 1});
  finish(cache, std::move(sequence));
  EXPECT_EQ(cache.draw(), R"(
A16
  B5 C5
)");
}

TEST(PrefixTree, ClearForgetsWhatNobodyUses) {
  TestCache cache(8);
  TestSequence sequence = running(cache, "A16 B16");
  cache.run("A16 C16");
  cache.tree->clear();
  EXPECT_EQ(cache.draw(), R"(
A16 *
  B16 *
)");
  EXPECT_EQ(cache.tree->stats().evicted_blocks, 0);
  EXPECT_EQ(cache.tree->acquire({}, tokens_from("A16 C17")).miss, MissReason::not_seen);
  cache.expect_sound({&sequence, 1});
}

TEST(PrefixTree, SaysWhyTheRestWasNotFound) {
  TestCache cache(8);
  const auto why = [&](std::string_view runs, const PrefixKey& key = {}) {
    return cache.tree->acquire(key, tokens_from(runs)).miss;
  };
  EXPECT_EQ(why("A16 B16 C16"), MissReason::not_seen);
  cache.run("A16 B16 C16");
  EXPECT_EQ(why("A16 B16 C16"), MissReason::none);
  EXPECT_EQ(why("A16 B16 D16"), MissReason::not_seen);
  cache.tree->evict(2);
  EXPECT_EQ(why("A16 B16 C16"), MissReason::evicted);
  EXPECT_EQ(why("A16 B9"), MissReason::not_seen);  // too short to be told from others
  EXPECT_EQ(why("A16 C16"), MissReason::not_seen);
  cache.tree->evict(1);
  EXPECT_EQ(why("A16 C16"), MissReason::evicted);
  EXPECT_EQ(why("A16 C16", {"other", ""}), MissReason::not_seen);
  cache.tree->record_skipped();
  using Misses = std::array<int64_t, kNumMissReasons>;
  EXPECT_EQ(cache.tree->stats().misses, (Misses{1, 6, 2, 1}));
}

TEST(PrefixTree, CountsAPromptOnceAndRecomputationApart) {
  TestCache cache(8);
  cache.run("A16 B4");
  for (int i = 0; i < 5; ++i) found(cache, "A16 B4");  // attempts to admit it
  TestSequence sequence = cache.start({}, tokens_from("A16 C14"));
  ASSERT_TRUE(cache.compute(sequence, 30));
  EXPECT_EQ(cache.tree->stats().prompts, (PrefixStats::Queries{2, 19 + 29, 16}));
  EXPECT_EQ(cache.tree->stats().recomputed, PrefixStats::Queries{});

  cache.insert(sequence, true);
  sequence.table = BlockTable(*cache.pool);
  sequence = cache.start({}, sequence.tokens, PrefixTree::Purpose::recompute);
  EXPECT_EQ(sequence.num_found, 29);
  EXPECT_EQ(cache.tree->stats().prompts, (PrefixStats::Queries{2, 19 + 29, 16}));
  EXPECT_EQ(cache.tree->stats().recomputed, (PrefixStats::Queries{1, 29, 29}));
}

TEST(PrefixTree, LeavesThePoolInOrderWhenItGoesFirst) {
  TestCache cache(8);
  TestSequence sequence = running(cache, "A32");
  cache.run("B32");
  cache.tree.reset();
  EXPECT_EQ(cache.pool->num_cached(), 0);
  EXPECT_EQ(cache.pool->num_held(), 2);
  EXPECT_TRUE(cache.pool->check(sequence.table.block_ids()));
}

TEST(PrefixKey, HashesNameABlockByAllThatItDependsOn) {
  TestCache cache(8);
  const auto tokens = tokens_from("A16 B16 C5");
  const PrefixKey key{"salt", "adapter"};
  TestSequence sequence = running(cache, "A16 B16 C5", key);
  const auto hashes = block_hashes(key, tokens, TestCache::kBlockSize);
  ASSERT_EQ(hashes.size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_EQ(cache.tree->hash_of(sequence.table.block_ids()[i]), hashes[i]);

  const auto first = [&](const PrefixKey& other) { return block_hashes(other, tokens, 16)[0]; };
  const PrefixKey keys[] = {{}, {"X", ""}, {"", "X"}, {"XY", ""}, {"X", "Y"}, {"", "XY"}};
  for (const PrefixKey& a : keys)
    for (const PrefixKey& b : keys) EXPECT_EQ(first(a) == first(b), a == b);
  EXPECT_NE(block_hashes({}, tokens_from("A16 B16"), 16)[1],
            block_hashes({}, tokens_from("C16 B16"), 16)[1]);
  EXPECT_TRUE(block_hashes({}, tokens_from("A15"), 16).empty());
}

// Names in lower tiers outlive the process: they must not change.
TEST(PrefixKey, HashesAreTheSameInEveryProcess) {
  const auto hashes = block_hashes({"salt", "adapter"}, tokens_from("A16 B16"), 16);
  EXPECT_EQ(hashes[1].high, 12245626246098175234u);
  EXPECT_EQ(hashes[1].low, 13013547669364787055u);
}

}  // namespace
}  // namespace octavo
