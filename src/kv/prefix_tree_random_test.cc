// Sequences that start, grow, branch, are cut, preempted, aborted and finished in any order, beside
// a model of the tree that is a list of token strings.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "kv/test_cache.h"

namespace octavo {
namespace {

constexpr size_t kSize = TestCache::kBlockSize;

// What can be found under one key: these strings and all their beginnings.
struct NaiveTree {
  std::set<std::string> strings;

  size_t find(const std::string& query) const {
    size_t longest = 0;
    for (const std::string& known : strings) {
      const auto ends = std::ranges::mismatch(known, query);
      longest = std::max(longest, static_cast<size_t>(ends.in1 - known.begin()));
    }
    return longest;
  }
};

std::string text_of(std::span<const TokenId> tokens) {
  std::string text;
  for (TokenId token : tokens) text += static_cast<char>(raw(token));
  return text;
}

class Session {
 public:
  Session(uint32_t seed, EvictionPolicy policy) : random_(seed), cache_(20, policy) {}

  void step() {
    const uint32_t action = random_() % 16;
    if (living_.empty() || (action < 3 && living_.size() < 6)) return start();
    const size_t i = random_() % living_.size();
    if (action < 8) return grow(i);
    if (action == 8) return end(i, true);
    if (action == 9) return end(i, random_() % 2 == 0);
    if (action == 10) return preempt(i);
    if (action == 11 && living_.size() < 6) return fork(i);
    if (action == 12) return cut(i);
    if (action == 13) return pin_or_unpin();
    if (action == 14) return evict(static_cast<int>(random_() % 6));
    if (random_() % 20 == 0) return clear();
    insert(living_[i], false);
  }

  void expect_sound() {
    cache_.expect_sound(living_, pins_);
    ASSERT_LE(cache_.pool->num_cached(), cache_.tree->num_nodes());
    for (size_t k = 0; k < std::size(kKeys); ++k) {
      expect_found(k, invent(k));
      for (const TestSequence& s : living_) expect_found(k, text_of(s.tokens));
    }
  }

  int hits = 0, partial_hits = 0, refusals = 0, replaced = 0, left_out = 0;
  int64_t evictions() const { return cache_.tree->stats().evicted_blocks; }

 private:
  inline static const PrefixKey kKeys[] = {{}, {"salt", ""}};

  NaiveTree& naive(const PrefixKey& key) { return naive_[key == kKeys[0] ? 0 : 1]; }

  // The beginning of something known or new, and some letters more.
  std::string invent(size_t k) {
    std::string text;
    const auto& strings = naive_[k].strings;
    if (!strings.empty() && random_() % 4 > 0) {
      text = *std::next(strings.begin(), static_cast<ptrdiff_t>(random_() % strings.size()));
      text.resize(random_() % (text.size() + 1));
    }
    for (size_t more = 1 + random_() % 30; more > 0; --more) text += letter();
    return text;
  }
  char letter() { return random_() % 8 == 0 ? 'B' : 'A'; }

  void expect_found(size_t k, const std::string& query) {
    std::vector<TokenId> tokens;
    for (char c : query) tokens.push_back(TokenId{c});
    const auto lookup = cache_.tree->lookup(kKeys[k], tokens);
    const size_t expected = std::min(naive_[k].find(query), query.size() - 1);
    ASSERT_EQ(static_cast<size_t>(lookup.num_tokens), expected) << query;
    ASSERT_EQ(static_cast<size_t>(lookup.num_blocks), (expected + kSize - 1) / kSize);
  }

  void start() {
    const size_t k = random_() % std::size(kKeys);
    std::vector<TokenId> prompt;
    for (char c : invent(k)) prompt.push_back(TokenId{c});
    if (prompt.size() > 120) prompt.resize(120);
    living_.push_back(cache_.start(kKeys[k], std::move(prompt)));
    const auto found = static_cast<size_t>(living_.back().num_found);
    hits += found > 0;
    partial_hits += found % kSize != 0;
  }

  // A chunk of the prompt, or tokens that follow it.
  void grow(size_t i) {
    TestSequence& s = living_[i];
    const size_t known = static_cast<size_t>(s.table.num_tokens()), more = 1 + random_() % 24;
    while (s.tokens.size() < known + more) s.tokens.push_back(TokenId{letter()});
    const bool fits = compute(s, known + more);
    refusals += !fits;
    if (!fits) return end(i, random_() % 2 == 0);
    if (random_() % 4 > 0) insert(s, false);
  }

  bool compute(TestSequence& s, size_t num_tokens) {
    const int64_t before = evictions();
    const bool fits = cache_.compute(s, static_cast<int>(num_tokens));
    if (evictions() > before) forget_evicted();
    return fits;
  }

  void insert(TestSequence& s, bool whole) {
    const auto known = static_cast<size_t>(s.table.num_tokens());
    const size_t shown = shown_tokens(s, whole ? known : known / kSize * kSize);
    const std::vector<BlockId> before(s.table.block_ids().begin(), s.table.block_ids().end());
    cache_.insert(s, whole);
    replaced += !std::ranges::equal(before, s.table.block_ids());
    if (shown > 0) naive(s.key).strings.insert(text_of(s.tokens).substr(0, shown));
  }

  // Blocks shared with another table are left out, unless the tree has them or equal ones.
  size_t shown_tokens(const TestSequence& s, size_t known) {
    const size_t in_tree = naive(s.key).find(text_of(s.tokens).substr(0, known));
    for (size_t begin = 0; begin < known; begin += kSize)
      if (std::min(begin + kSize, known) > in_tree &&
          !s.table.is_last_user(static_cast<int>(begin / kSize))) {
        ++left_out;
        return begin;
      }
    return known;
  }

  void end(size_t i, bool normally) {
    if (normally) insert(living_[i], true);
    std::swap(living_[i], living_.back());
    living_.pop_back();
  }

  void preempt(size_t i) {
    TestSequence& s = living_[i];
    insert(s, true);
    s.table = BlockTable(*cache_.pool);
    s = cache_.start(s.key, s.tokens, PrefixTree::Purpose::recompute);
  }

  void fork(size_t i) {
    const TestSequence& parent = living_[i];
    TestSequence child{parent.key, parent.tokens, parent.table.fork()};
    child.tokens.resize(static_cast<size_t>(child.table.num_tokens()));
    living_.push_back(std::move(child));
  }

  void cut(size_t i) {
    TestSequence& s = living_[i];
    const int kept = static_cast<int>(random_()) & 0x7fffffff;
    ASSERT_TRUE(s.table.truncate(kept % (s.table.num_tokens() + 1)));
    s.tokens.resize(static_cast<size_t>(s.table.num_tokens()));
  }

  void pin_or_unpin() {
    if (pins_.size() == 2) {
      pins_.pop_back();
    } else if (!living_.empty()) {
      const TestSequence& s = living_[random_() % living_.size()];
      const int found = static_cast<int>(naive(s.key).find(text_of(s.tokens)));
      pins_.push_back(cache_.tree->pin(s.key, s.tokens));
      ASSERT_EQ(pins_.back().num_tokens(), found);
    }
  }

  void evict(int count) {
    const int cached = cache_.pool->num_cached(), free = cache_.pool->num_free();
    ASSERT_EQ(cache_.tree->evict(count), std::min(count, cached));
    ASSERT_EQ(cache_.pool->num_free(), free + std::min(count, cached));
    forget_evicted();
  }

  void clear() {
    cache_.tree->clear();
    ASSERT_EQ(cache_.pool->num_cached(), 0);
    forget_evicted();
  }

  // The model does not know what was evicted; it takes over what is left, which it must have known.
  void forget_evicted() {
    for (size_t k = 0; k < std::size(kKeys); ++k) {
      NaiveTree left;
      enumerate(cache_.tree->first_blocks(kKeys[k]), "", left);
      for (const std::string& text : left.strings) ASSERT_EQ(naive_[k].find(text), text.size());
      naive_[k] = left;
    }
  }

  void enumerate(std::span<const BlockId> siblings, const std::string& before, NaiveTree& tree) {
    for (BlockId id : siblings) {
      const std::string text = before + text_of(cache_.tree->tokens_of(id));
      tree.strings.insert(text);
      enumerate(cache_.tree->children_of(id), text, tree);
    }
  }

  std::mt19937 random_;
  TestCache cache_;
  NaiveTree naive_[2];
  std::vector<TestSequence> living_;
  std::vector<PrefixTree::Pin> pins_;
};

TEST(PrefixTree, AgreesWithAListOfStringsOverRandomOperations) {
  int hits = 0, partial_hits = 0, refusals = 0, replaced = 0, left_out = 0;
  int64_t evictions = 0;
  for (uint32_t seed = 0; seed < 6; ++seed) {
    Session session(seed, seed % 2 == 0 ? EvictionPolicy::lru : EvictionPolicy::lfu);
    for (int step = 0; step < 800; ++step) {
      session.step();
      session.expect_sound();
      ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed << " step " << step;
    }
    hits += session.hits;
    partial_hits += session.partial_hits;
    refusals += session.refusals;
    replaced += session.replaced;
    left_out += session.left_out;
    evictions += session.evictions();
  }
  EXPECT_GT(hits, 100);  // all paths were taken often
  EXPECT_GT(partial_hits, 100);
  EXPECT_GT(refusals, 20);
  EXPECT_GT(replaced, 20);
  EXPECT_GT(left_out, 20);
  EXPECT_GT(evictions, 1000);
}

}  // namespace
}  // namespace octavo
