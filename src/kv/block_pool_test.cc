#include "kv/block_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <type_traits>

#include "kv/block_size.h"

namespace octavo {
namespace {

std::unique_ptr<BlockPool> pool_of(int num_blocks, int block_size = 16) {
  return BlockPool::create(num_blocks, block_size).value();
}

std::vector<BlockId> ids_of(const std::vector<BlockRef>& refs) {
  std::vector<BlockId> ids;
  for (const BlockRef& ref : refs) ids.push_back(ref.id());
  return ids;
}

// A copy would be a second owner that nobody counted: it does not compile.
static_assert(!std::is_copy_constructible_v<BlockRef> && !std::is_copy_assignable_v<BlockRef>);
static_assert(std::is_nothrow_move_constructible_v<BlockRef>);
static_assert(!std::is_move_constructible_v<BlockPool>);

TEST(BlockSize, MustDivide256AndHoldAKeyGroup) {
  for (int size : {16, 32, 64, 128, 256}) EXPECT_TRUE(check_block_size(size)) << size;
  for (int size : {-16, 0, 1, 8, 17, 48, 512}) {
    const Result<void> result = check_block_size(size);
    ASSERT_FALSE(result) << size;
    EXPECT_EQ(result.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(result.error().message,
              "block size is " + std::to_string(size) + " tokens; allowed: 16, 32, 64, 128, 256");
  }
}

TEST(BlockSize, BlocksAreRoundedUp) {
  EXPECT_EQ(blocks_for(0, 16), 0);
  EXPECT_EQ(blocks_for(1, 16), 1);
  EXPECT_EQ(blocks_for(16, 16), 1);
  EXPECT_EQ(blocks_for(17, 16), 2);
  EXPECT_EQ(blocks_for(INT64_MAX, 16), INT64_MAX / 16 + 1);
}

TEST(BlockPool, RefusesImpossibleSizes) {
  for (int num_blocks : {-1, 0, BlockPool::kMaxBlocks + 1})
    EXPECT_EQ(BlockPool::create(num_blocks, 16).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(BlockPool::create(4, 15).error().code, ErrorCode::invalid_argument);
}

TEST(BlockPool, GivesOutAscendingIdsThenTheLastReturned) {
  const auto pool = pool_of(4);
  // free: 0 1 2 3        held: -
  BlockRef a = pool->allocate().value();
  BlockRef b = pool->allocate().value();
  BlockRef c = pool->allocate().value();
  // free: 3              held: a=0 b=1 c=2
  EXPECT_EQ(a.id(), BlockId{0});
  EXPECT_EQ(b.id(), BlockId{1});
  EXPECT_EQ(c.id(), BlockId{2});
  a = BlockRef();
  b = BlockRef();
  // free: 1 0 3          held: c=2
  EXPECT_EQ(pool->num_free(), 3);
  EXPECT_EQ(pool->allocate().value().id(), BlockId{1});  // returned again at once
  const BlockRef first = pool->allocate().value(), second = pool->allocate().value();
  EXPECT_EQ(first.id(), BlockId{1});
  EXPECT_EQ(second.id(), BlockId{0});
}

TEST(BlockPool, IsExhaustedWithASentence) {
  const auto pool = pool_of(2, 32);
  const BlockRef a = pool->allocate().value(), b = pool->allocate().value();
  const auto none = pool->allocate();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(none.error().message.find("all 2 KV blocks of 32 tokens"), std::string::npos);
  EXPECT_TRUE(pool->check());
}

TEST(BlockRef, LastOwnerReturnsTheBlock) {
  const auto pool = pool_of(2);
  BlockRef first = pool->allocate().value();
  EXPECT_FALSE(first.is_shared());
  BlockRef second = first.share();
  EXPECT_TRUE(first.is_shared());
  EXPECT_EQ(second.id(), first.id());
  first = BlockRef();
  EXPECT_FALSE(second.is_shared());
  EXPECT_EQ(pool->num_held(), 1);
  second = BlockRef();
  EXPECT_EQ(pool->num_held(), 0);
}

TEST(BlockRef, MovesKeepOneOwner) {
  const auto pool = pool_of(2);
  BlockRef a = pool->allocate().value();
  BlockRef b = std::move(a);
  EXPECT_EQ(a.id(), kNoBlock);  // NOLINT: the moved-from state is part of the contract
  EXPECT_EQ(b.id(), BlockId{0});
  BlockRef& itself = b;
  b = std::move(itself);
  EXPECT_EQ(b.id(), BlockId{0});
  EXPECT_FALSE(b.is_shared());
  b = pool->allocate().value();  // the old block goes back
  EXPECT_EQ(b.id(), BlockId{1});
  EXPECT_EQ(pool->num_held(), 1);
}

TEST(BlockPool, ABlockThatOnlyTheTreeOwnsIsCached) {
  const auto pool = pool_of(3);
  const auto expect = [&](int free, int held, int cached) {
    EXPECT_EQ(pool->num_free(), free);
    EXPECT_EQ(pool->num_held(), held);
    EXPECT_EQ(pool->num_cached(), cached);
    EXPECT_TRUE(pool->check());
  };
  BlockRef user = pool->allocate().value();
  BlockRef tree = user.share();
  expect(2, 1, 0);
  EXPECT_FALSE(user.is_last_user());
  pool->set_in_tree(tree, true);
  expect(2, 1, 0);
  EXPECT_TRUE(user.is_last_user());
  EXPECT_TRUE(user.is_shared());  // and must not be written

  user = BlockRef();
  expect(2, 0, 1);
  BlockRef again = tree.share();
  expect(2, 1, 0);
  BlockRef third = again.share();
  EXPECT_FALSE(again.is_last_user());
  third = BlockRef();
  again = BlockRef();
  expect(2, 0, 1);

  pool->set_in_tree(tree, true);  // known already
  expect(2, 0, 1);
  pool->set_in_tree(tree, false);
  expect(2, 1, 0);
  tree = BlockRef();
  expect(3, 0, 0);
}

TEST(BlockPool, RunsAreTheLowestConsecutiveIds) {
  const auto pool = pool_of(8);
  std::vector<BlockRef> all = pool->allocate_run(8).value();
  for (int free : {1, 3, 4, 6}) all[static_cast<size_t>(free)] = BlockRef();
  // free: 1 3 4 6
  EXPECT_EQ(pool->longest_free_run(), 2);
  const auto refused = pool->allocate_run(3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message.find("3 KV blocks in a row are needed; 4 of 8 are free, but at "
                                         "most 2 in a row"),
            std::string::npos)
      << refused.error().message;
  EXPECT_EQ(pool->num_free(), 4);

  const std::vector<BlockRef> pair = pool->allocate_run(2).value();
  // free: 1 6
  EXPECT_EQ(ids_of(pair), (std::vector<BlockId>{BlockId{3}, BlockId{4}}));
  EXPECT_EQ(pool->allocate_run(1).value()[0].id(), BlockId{1});
  EXPECT_TRUE(pool->allocate_run(0).value().empty());
  EXPECT_EQ(pool->num_free(), 2);
  EXPECT_TRUE(pool->check());
  // Single blocks are given out in the order in which they were returned, as if nothing was.
  const BlockRef first = pool->allocate().value(), second = pool->allocate().value();
  EXPECT_EQ(first.id(), BlockId{1});
  EXPECT_EQ(second.id(), BlockId{6});
  EXPECT_FALSE(pool->allocate_run(1));
  EXPECT_TRUE(pool->allocate_run(0));
  EXPECT_EQ(pool->longest_free_run(), 0);
}

TEST(CheckBlocks, FindsEveryContradiction) {
  struct Case {
    std::vector<int32_t> owners;
    std::vector<uint8_t> in_tree;
    std::vector<BlockId> free;
    int num_cached;
    std::string named;  // part of the message; empty: consistent
  };
  const Case cases[] = {
      {{0, 1, 2}, {0, 0, 0}, {BlockId{0}}, 0, ""},
      {{0, 1, 2}, {0, 1, 1}, {BlockId{0}}, 1, ""},
      {{0, 0}, {0, 0}, {BlockId{1}, BlockId{0}}, 0, ""},
      {{0, 1, 0}, {0, 0, 0}, {BlockId{0}}, 0, "block 2 is neither free nor held"},
      {{0, 1}, {0, 0}, {BlockId{0}, BlockId{0}}, 0, "block 0 is in the free list twice"},
      {{0, 1}, {0, 0}, {BlockId{0}, BlockId{1}}, 0, "block 1 is free and has an owner"},
      {{0, -1}, {0, 0}, {BlockId{0}, BlockId{1}}, 0, "block 1 has been returned more often"},
      {{0}, {0}, {BlockId{0}, BlockId{1}}, 0, "block 1 is free, but does not exist"},
      {{0}, {0}, {BlockId{0}, kNoBlock}, 0, "block -1 is free, but does not exist"},
      {{0, 1}, {1, 0}, {BlockId{0}}, 0, "block 0 is in the prefix tree, but free"},
      {{1, 2}, {1, 1}, {}, 2, "1 blocks are cached, but 2 counted"},
  };
  for (const Case& c : cases) {
    const Result<void> result = check_blocks(c.owners, c.in_tree, c.free, c.num_cached);
    ASSERT_EQ(result.has_value(), c.named.empty()) << c.named;
    if (!result) {
      EXPECT_NE(result.error().message.find(c.named), std::string::npos) << c.named;
    }
  }
}

TEST(CheckBlocks, FindsForgottenAndInventedReferences) {
  const auto pool = pool_of(3);
  const BlockRef a = pool->allocate().value(), b = a.share(), c = pool->allocate().value();
  using Ids = std::vector<BlockId>;
  EXPECT_TRUE(pool->check(Ids{BlockId{0}, BlockId{1}, BlockId{0}}));
  EXPECT_FALSE(pool->check(Ids{BlockId{0}, BlockId{1}}));
  EXPECT_FALSE(pool->check(Ids{BlockId{0}, BlockId{0}, BlockId{1}, BlockId{2}}));
  EXPECT_FALSE(pool->check(Ids{BlockId{0}, BlockId{0}, BlockId{1}, BlockId{3}}));
}

TEST(BlockPool, AgreesWithAModelOverRandomOperations) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    const auto pool = pool_of(20);
    std::vector<BlockRef> refs;
    for (int step = 0; step < 1500; ++step) {
      const size_t victim = refs.empty() ? 0 : random() % refs.size();
      const uint32_t action = random() % 6;
      if (action == 5) {
        const int count = static_cast<int>(random() % 5), longest = pool->longest_free_run();
        auto run = pool->allocate_run(count);
        ASSERT_EQ(run.has_value(), count <= longest);
        for (size_t i = 0; run && i < run->size(); ++i) {
          if (i > 0) {
            ASSERT_EQ(raw((*run)[i].id()), raw(refs.back().id()) + 1);
          }
          refs.push_back(std::move((*run)[i]));
        }
      } else if (action < 2) {
        auto fresh = pool->allocate();
        if (fresh)
          refs.push_back(std::move(*fresh));
        else
          ASSERT_EQ(pool->num_free(), 0);
      } else if (action == 2 && !refs.empty() && refs.size() < 60) {
        refs.push_back(refs[victim].share());
      } else if (!refs.empty()) {
        std::swap(refs[victim], refs.back());
        refs.pop_back();
      }
      std::map<BlockId, int> owners;
      for (const BlockRef& ref : refs) ++owners[ref.id()];
      ASSERT_EQ(pool->num_held(), static_cast<int>(owners.size()));
      for (const BlockRef& ref : refs) ASSERT_EQ(ref.is_shared(), owners[ref.id()] > 1);
      const Result<void> consistent = pool->check(ids_of(refs));
      ASSERT_TRUE(consistent) << "seed " << seed << " step " << step << ": "
                              << consistent.error().message;
    }
    refs.clear();
    EXPECT_EQ(pool->num_free(), 20);
  }
}

}  // namespace
}  // namespace octavo
