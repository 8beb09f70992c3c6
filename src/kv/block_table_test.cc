#include "kv/block_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace octavo {
namespace {

constexpr int kSize = 16;

std::unique_ptr<BlockPool> pool_of(int num_blocks) {
  return BlockPool::create(num_blocks, kSize).value();
}

std::vector<int> ids(const BlockTable& table) {
  std::vector<int> result;
  for (BlockId id : table.block_ids()) result.push_back(raw(id));
  return result;
}

using Ids = std::vector<int>;
using Copies = std::vector<BlockCopy>;

TEST(BlockTable, GrowsByWholeBlocks) {
  const auto pool = pool_of(8);
  BlockTable table(*pool);
  struct Step {
    int num_tokens;
    Ids expected;
  };
  const Step steps[] = {{0, {}},      {1, {0}},     {16, {0}},
                        {17, {0, 1}}, {17, {0, 1}}, {64, {0, 1, 2, 3}}};
  for (const Step& step : steps) {
    EXPECT_EQ(table.reserve(step.num_tokens).value(), Copies{});
    EXPECT_EQ(table.num_tokens(), step.num_tokens);
    EXPECT_EQ(ids(table), step.expected);
  }
  EXPECT_TRUE(pool->check(table.block_ids()));
}

TEST(BlockTable, ReturnsItsBlocksWhenItGoes) {
  const auto pool = pool_of(4);
  {
    BlockTable table(*pool);
    ASSERT_TRUE(table.reserve(50));
    EXPECT_EQ(pool->num_free(), 0);
  }
  EXPECT_EQ(pool->num_free(), 4);
}

TEST(BlockTable, ExhaustionChangesNothing) {
  const auto pool = pool_of(4);
  BlockTable a(*pool), b(*pool);
  ASSERT_TRUE(a.reserve(20));
  ASSERT_TRUE(b.reserve(16));
  // a: [0 1]  b: [2]  free: 3
  const auto refused = a.reserve(65);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_NE(refused.error().message.find("65 tokens need 3 more KV blocks, but only 1 of 4"),
            std::string::npos)
      << refused.error().message;
  // a: [0 1]  b: [2]  free: 3
  EXPECT_EQ(ids(a), (Ids{0, 1}));
  EXPECT_EQ(a.num_tokens(), 20);
  EXPECT_EQ(pool->num_free(), 1);
  EXPECT_TRUE(a.reserve(48));
}

TEST(BlockTable, ExhaustionOfTheCopyChangesNothing) {
  const auto pool = pool_of(2);
  BlockTable a(*pool);
  ASSERT_TRUE(a.reserve(20));
  BlockTable b = a.fork();
  // a, b: [0 1]  free: -
  const auto refused = b.reserve(21);  // fits the block, but the block is not its own
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(ids(b), (Ids{0, 1}));
  EXPECT_EQ(b.num_tokens(), 20);
}

TEST(BlockTable, ForkCopiesOnWrite) {
  const auto pool = pool_of(8);
  BlockTable a(*pool);
  ASSERT_TRUE(a.reserve(20));
  BlockTable b = a.fork();
  // a: [0 1]  b: [0 1]  20 tokens each
  EXPECT_EQ(pool->num_held(), 2);
  EXPECT_EQ(ids(b), ids(a));
  EXPECT_EQ(b.num_tokens(), 20);

  EXPECT_EQ(b.reserve(21).value(), (Copies{{BlockId{1}, BlockId{2}, 4}}));
  // a: [0 1]  b: [0 2]
  EXPECT_EQ(ids(a), (Ids{0, 1}));
  EXPECT_EQ(ids(b), (Ids{0, 2}));

  EXPECT_EQ(a.reserve(40).value(), Copies{});  // the last owner writes in place
  // a: [0 1 3]  b: [0 2]
  EXPECT_EQ(ids(a), (Ids{0, 1, 3}));
  EXPECT_TRUE(pool->check());
}

TEST(BlockTable, FullBlocksStaySharedForEver) {
  const auto pool = pool_of(8);
  BlockTable a(*pool);
  ASSERT_TRUE(a.reserve(32));
  BlockTable b = a.fork();
  EXPECT_EQ(b.reserve(33).value(), Copies{});
  EXPECT_EQ(a.reserve(33).value(), Copies{});
  // a: [0 1 3]  b: [0 1 2]
  EXPECT_EQ(ids(a), (Ids{0, 1, 3}));
  EXPECT_EQ(ids(b), (Ids{0, 1, 2}));
}

TEST(BlockTable, TruncateReturnsWholeBlocks) {
  const auto pool = pool_of(8);
  BlockTable table(*pool);
  ASSERT_TRUE(table.reserve(60));
  struct Step {
    int num_tokens;
    Ids expected;
  };
  const Step steps[] = {{49, {0, 1, 2, 3}}, {48, {0, 1, 2}}, {17, {0, 1}}, {1, {0}}, {0, {}}};
  for (const Step& step : steps) {
    ASSERT_TRUE(table.truncate(step.num_tokens));
    EXPECT_EQ(ids(table), step.expected);
    EXPECT_EQ(table.num_tokens(), step.num_tokens);
  }
}

TEST(BlockTable, TruncateIntoASharedBlockThenWriteCopies) {
  const auto pool = pool_of(8);
  BlockTable a(*pool);
  ASSERT_TRUE(a.reserve(40));
  BlockTable b = a.fork();
  // a, b: [0 1 2]
  ASSERT_TRUE(b.truncate(10));
  // a: [0 1 2]  b: [0]  10 tokens of it
  EXPECT_EQ(b.reserve(20).value(), (Copies{{BlockId{0}, BlockId{3}, 10}}));
  // a: [0 1 2]  b: [3 4]
  EXPECT_EQ(ids(a), (Ids{0, 1, 2}));
  EXPECT_EQ(ids(b), (Ids{3, 4}));
}

TEST(BlockTable, SaysWhatReserveWillTake) {
  const auto pool = pool_of(8);
  BlockTable a(*pool);
  EXPECT_EQ(a.blocks_to_reserve(0), 0);
  EXPECT_EQ(a.blocks_to_reserve(33), 3);
  ASSERT_TRUE(a.reserve(20));
  EXPECT_EQ(a.num_blocks(), 2);
  EXPECT_EQ(a.blocks_to_reserve(5), 0);
  EXPECT_EQ(a.blocks_to_reserve(32), 0);
  EXPECT_EQ(a.blocks_to_reserve(33), 1);
  EXPECT_EQ(a.num_unshared(), 2);
  {
    const BlockTable b = a.fork();
    // a, b: [0 1], 20 tokens
    EXPECT_EQ(a.blocks_to_reserve(20), 0);
    EXPECT_EQ(a.blocks_to_reserve(21), 1);
    EXPECT_EQ(a.blocks_to_reserve(33), 2);
    EXPECT_EQ(a.num_unshared(), 0);
    EXPECT_EQ(a.blocks_to_reserve(INT32_MAX), INT32_MAX / kSize + 1 - 2 + 1);
  }
  EXPECT_EQ(a.blocks_to_reserve(21), 0);
  EXPECT_EQ(a.num_unshared(), 2);
}

TEST(BlockTable, AdoptsPositionsThatOthersComputed) {
  const auto pool = pool_of(8);
  BlockTable a(*pool);
  ASSERT_TRUE(a.reserve(40));
  // a: [0 1 2]
  const auto adopted = [&](int num_blocks, int num_tokens) {
    std::vector<BlockRef> blocks;
    for (int i = 0; i < num_blocks; ++i) blocks.push_back(a.share_block(i));
    BlockTable table(*pool);
    table.adopt(std::move(blocks), num_tokens);
    return table;
  };
  BlockTable b = adopted(2, 25);
  EXPECT_EQ(ids(b), (Ids{0, 1}));
  EXPECT_EQ(b.num_tokens(), 25);
  EXPECT_EQ(b.blocks_to_reserve(26), 1);
  EXPECT_EQ(b.reserve(40).value(), (Copies{{BlockId{1}, BlockId{3}, 9}}));
  // b: [0 3 4]
  EXPECT_EQ(ids(b), (Ids{0, 3, 4}));

  BlockTable c = adopted(2, 32);  // nothing to copy at the end of a block
  EXPECT_EQ(c.reserve(33).value(), Copies{});
  EXPECT_EQ(ids(c), (Ids{0, 1, 5}));

  BlockTable d = adopted(3, 40);
  ASSERT_TRUE(a.truncate(0));
  // d: [0 1 2], the last of them its own by now
  EXPECT_EQ(d.reserve(41).value(), Copies{});
}

TEST(BlockTable, ReplacesABlockByAnEqualOne) {
  const auto pool = pool_of(4);
  BlockTable a(*pool), b(*pool);
  ASSERT_TRUE(a.reserve(32));
  ASSERT_TRUE(b.reserve(32));
  b.replace_block(0, a.share_block(0));
  // a: [0 1]  b: [0 3]  free: 2
  EXPECT_EQ(ids(b), (Ids{0, 3}));
  EXPECT_EQ(pool->num_free(), 1);
  EXPECT_EQ(pool->allocate().value().id(), BlockId{2});
}

TEST(BlockTable, ARunIsReservedInAdvance) {
  const auto pool = pool_of(8);
  BlockTable a(*pool), b(*pool);
  ASSERT_TRUE(a.reserve(1));
  ASSERT_TRUE(b.reserve_run(50));
  // a: [0]  b: [1 2 3 4], no position yet
  EXPECT_EQ(ids(b), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(b.num_tokens(), 0);
  for (int num_tokens : {1, 16, 17, 64}) {
    EXPECT_EQ(b.blocks_to_reserve(num_tokens), 0);
    EXPECT_EQ(b.reserve(num_tokens).value(), Copies{});
    EXPECT_EQ(b.num_tokens(), num_tokens);
    EXPECT_EQ(b.num_blocks(), 4);
  }
  ASSERT_TRUE(b.truncate(20));
  EXPECT_EQ(ids(b), (Ids{1, 2, 3, 4}));  // the run stays
  ASSERT_TRUE(b.reserve(65));
  EXPECT_EQ(ids(b), (Ids{1, 2, 3, 4, 5}));  // beyond it single blocks follow
  ASSERT_TRUE(b.truncate(64));
  EXPECT_EQ(ids(b), (Ids{1, 2, 3, 4}));

  EXPECT_EQ(b.reserve_run(16).error().code, ErrorCode::invalid_argument);
  BlockTable c(*pool);
  EXPECT_EQ(c.reserve_run(-1).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(c.reserve_run(4 * kSize).error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(c.num_blocks(), 0);
  EXPECT_EQ(pool->num_free(), 3);
}

TEST(BlockTable, AForkSharesPositionsAndNotTheRestOfARun) {
  const auto pool = pool_of(8);
  BlockTable a(*pool);
  ASSERT_TRUE(a.reserve_run(64));
  ASSERT_TRUE(a.reserve(40));
  // a: [0 1 2 3]
  BlockTable b = a.fork();
  EXPECT_EQ(ids(b), (Ids{0, 1, 2}));
  EXPECT_EQ(a.reserve(50).value(), (Copies{{BlockId{2}, BlockId{4}, 8}}));
  EXPECT_EQ(ids(a), (Ids{0, 1, 4, 3}));

  // Shared blocks of the run that have lost their positions are not written either.
  BlockTable c = a.fork();
  ASSERT_TRUE(a.truncate(8));
  // a: [0 1 4 3], 8 tokens of it
  EXPECT_EQ(a.blocks_to_reserve(64), 4);
  ASSERT_TRUE(b.truncate(0));
  EXPECT_EQ(a.reserve(64).value(), (Copies{{BlockId{0}, BlockId{2}, 8}}));
  EXPECT_EQ(ids(c), (Ids{0, 1, 4, 3}));
  for (BlockId id : a.block_ids()) EXPECT_EQ(std::ranges::count(c.block_ids(), id), 0);
  EXPECT_TRUE(pool->check());
}

TEST(BlockTable, RefusesLengthsThatMakeNoSense) {
  const auto pool = pool_of(8);
  BlockTable table(*pool);
  ASSERT_TRUE(table.reserve(20));
  for (int length : {19, 0, -1})
    EXPECT_EQ(table.reserve(length).error().code, ErrorCode::invalid_argument);
  for (int length : {21, -1})
    EXPECT_EQ(table.truncate(length).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(table.reserve(INT32_MAX).error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(table.num_tokens(), 20);
}

// Sequences over one storage of plain numbers, each beside the contents it ought to have. Numbers
// are never repeated, so that reading another sequence's block cannot go unnoticed.
class Simulation {
 public:
  explicit Simulation(uint32_t seed)
      : random_(seed), storage_(kBlocks, std::vector<int>(kSize, -1)) {}

  void step() {
    const uint32_t action = random_() % 10;
    if (sequences_.empty() || (action == 0 && sequences_.size() < 8)) {
      sequences_.push_back({BlockTable(*pool_), {}});
      if (random_() % 4 == 0) runs_ += sequences_.back().table.reserve_run(60).has_value();
    } else if (action == 1 && sequences_.size() < 8) {
      const Sequence& parent = any();
      sequences_.push_back({parent.table.fork(), parent.expected});
    } else if (action == 2) {
      std::swap(any(), sequences_.back());
      sequences_.pop_back();
    } else if (action <= 4) {
      Sequence& s = any();
      s.expected.resize(random_() % (s.expected.size() + 1));
      ASSERT_TRUE(s.table.truncate(static_cast<int>(s.expected.size())));
    } else if (action <= 8) {
      append({&any()}, 1 + random_() % 40);
    } else {
      std::vector<Sequence*> all;
      for (Sequence& s : sequences_) all.push_back(&s);
      append(all, 1);
    }
  }

  void expect_consistent() {
    std::vector<BlockId> references;
    for (const Sequence& s : sequences_) {
      const auto blocks = s.table.block_ids();
      references.insert(references.end(), blocks.begin(), blocks.end());
      ASSERT_EQ(s.table.num_tokens(), static_cast<int>(s.expected.size()));
      for (size_t p = 0; p < s.expected.size(); ++p) ASSERT_EQ(at(s, p), s.expected[p]);
    }
    const Result<void> consistent = pool_->check(references);
    ASSERT_TRUE(consistent) << consistent.error().message;
  }

  int refusals() const { return refusals_; }
  int copies() const { return copies_; }
  int runs() const { return runs_; }

 private:
  static constexpr int kBlocks = 24;
  struct Sequence {
    BlockTable table;
    std::vector<int> expected;
  };

  Sequence& any() { return sequences_[random_() % sequences_.size()]; }
  int& at(const Sequence& s, size_t p) {
    return storage_[raw(s.table.block_ids()[p / kSize])][p % kSize];
  }

  // One step of an engine: reserve for everybody, then copy, then write.
  void append(const std::vector<Sequence*>& batch, size_t count) {
    std::vector<Sequence*> admitted;
    std::vector<BlockCopy> copies;
    for (Sequence* s : batch) {
      const int needed = s->table.blocks_to_reserve(static_cast<int>(s->expected.size() + count));
      const int free = pool_->num_free();
      const auto reserved = s->table.reserve(static_cast<int>(s->expected.size() + count));
      ASSERT_EQ(reserved.has_value(), needed <= free);
      if (reserved) {
        ASSERT_EQ(pool_->num_free(), free - needed);
        admitted.push_back(s);
        copies.insert(copies.end(), reserved->begin(), reserved->end());
      } else {
        ASSERT_EQ(reserved.error().code, ErrorCode::resource_exhausted);
        ++refusals_;
      }
    }
    for (const BlockCopy& copy : copies) carry_out(copy);
    for (Sequence* s : admitted) write(*s, count);
  }

  void carry_out(const BlockCopy& copy) {
    const auto& from = storage_[raw(copy.from)];
    std::copy_n(from.begin(), copy.filled_tokens, storage_[raw(copy.to)].begin());
    ++copies_;
  }

  void write(Sequence& s, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      at(s, s.expected.size()) = ++last_number_;
      s.expected.push_back(last_number_);
    }
  }

  std::mt19937 random_;
  std::unique_ptr<BlockPool> pool_ = pool_of(kBlocks);
  std::vector<std::vector<int>> storage_;
  std::vector<Sequence> sequences_;
  int last_number_ = 0, refusals_ = 0, copies_ = 0, runs_ = 0;
};

TEST(BlockTable, SequencesNeverSeeEachOthersWrites) {
  int refusals = 0, copies = 0, runs = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    Simulation simulation(seed);
    for (int step = 0; step < 2000; ++step) {
      simulation.step();
      simulation.expect_consistent();
      ASSERT_FALSE(HasFatalFailure()) << "seed " << seed << " step " << step;
    }
    refusals += simulation.refusals();
    copies += simulation.copies();
    runs += simulation.runs();
  }
  EXPECT_GT(refusals, 100);  // all paths were taken often
  EXPECT_GT(copies, 100);
  EXPECT_GT(runs, 20);
}

}  // namespace
}  // namespace octavo
