// For tests: a pool, a prefix tree, and a storage in which each position holds a number that
// depends on the key and all tokens so far, as K and V do. Reading back the wrong one is noticed.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "kv/prefix_tree.h"

namespace octavo {

// "A16 B3": sixteen tokens A, then three tokens B.
inline std::vector<TokenId> tokens_from(std::string_view runs) {
  std::vector<TokenId> tokens;
  std::istringstream stream{std::string(runs)};
  char letter;
  for (size_t count; stream >> letter >> count;)
    tokens.insert(tokens.end(), count, TokenId{letter});
  return tokens;
}

inline std::string runs_from(std::span<const TokenId> tokens) {
  std::string runs;
  for (size_t begin = 0, end = 0; begin < tokens.size(); begin = end) {
    while (end < tokens.size() && tokens[end] == tokens[begin]) ++end;
    if (begin > 0) runs += ' ';
    runs += static_cast<char>(raw(tokens[begin])) + std::to_string(end - begin);
  }
  return runs;
}

struct TestSequence {
  PrefixKey key;
  std::vector<TokenId> tokens;
  BlockTable table;
  int num_found = 0;  // tokens taken from the tree at the start
};

class TestCache {
 public:
  static constexpr int kBlockSize = 16;

  explicit TestCache(int num_blocks, EvictionPolicy policy = EvictionPolicy::lru)
      : pool(BlockPool::create(num_blocks, kBlockSize).value()),
        tree(std::make_unique<PrefixTree>(*pool, policy)),
        storage_(static_cast<size_t>(num_blocks) * kBlockSize) {}

  // Takes what the tree has of the prompt; nothing is computed yet.
  TestSequence start(const PrefixKey& key, std::vector<TokenId> prompt,
                     PrefixTree::Purpose purpose = PrefixTree::Purpose::prompt) {
    PrefixMatch match = tree->acquire(key, prompt, purpose);
    TestSequence sequence{key, std::move(prompt), BlockTable(*pool), match.num_tokens};
    sequence.table.adopt(std::move(match.blocks), match.num_tokens);
    return sequence;
  }

  // Computes the positions up to num_tokens, evicting as necessary; false if there is no room.
  [[nodiscard]] bool compute(TestSequence& sequence, int num_tokens) {
    const int begin = sequence.table.num_tokens();
    tree->evict(sequence.table.blocks_to_reserve(num_tokens) - pool->num_free());
    const auto copies = sequence.table.reserve(num_tokens);
    if (!copies) return false;
    for (const BlockCopy& copy : *copies)
      for (int p = 0; p < copy.filled_tokens; ++p) at(copy.to, p) = at(copy.from, p);
    const auto contents = contents_of(sequence);
    for (int p = begin; p < num_tokens; ++p) at(sequence, p) = contents[static_cast<size_t>(p)];
    return true;
  }

  // Shows the tree what has been computed.
  void insert(TestSequence& sequence, bool whole = false) {
    const auto known = static_cast<size_t>(sequence.table.num_tokens());
    tree->insert(sequence.key, std::span(sequence.tokens).first(known), sequence.table, whole);
  }

  // A sequence from its start to its end; returns how many tokens it found.
  int run(std::string_view runs, const PrefixKey& key = {}) {
    TestSequence sequence = start(key, tokens_from(runs));
    EXPECT_TRUE(compute(sequence, static_cast<int>(sequence.tokens.size())));
    expect_readable(sequence);
    insert(sequence, true);
    expect_readable(sequence);
    return sequence.num_found;
  }

  void expect_readable(const TestSequence& sequence) {
    const auto contents = contents_of(sequence);
    for (int p = 0; p < sequence.table.num_tokens(); ++p)
      ASSERT_EQ(at(sequence, p), contents[static_cast<size_t>(p)]) << "position " << p;
  }

  // That these are all living sequences, each reads what it wrote, and nothing is lost.
  void expect_sound(std::span<const TestSequence> living,
                    std::span<const PrefixTree::Pin> pins = {}) {
    std::vector<BlockId> references;
    tree->append_references(references);
    for (const TestSequence& sequence : living) {
      const auto ids = sequence.table.block_ids();
      references.insert(references.end(), ids.begin(), ids.end());
      expect_readable(sequence);
    }
    for (const PrefixTree::Pin& pin : pins)
      for (const BlockRef& block : pin.blocks()) references.push_back(block.id());
    const Result<void> owned = pool->check(references), structure = tree->check();
    ASSERT_TRUE(owned) << owned.error().message;
    ASSERT_TRUE(structure) << structure.error().message;
    ASSERT_EQ(pool->num_free() + pool->num_held() + pool->num_cached(), pool->num_blocks());
  }

  // One line for each block: two spaces for each block before it, its tokens, '*' if it is in use.
  std::string draw(const PrefixKey& key = {}) const {
    std::string picture = "\n";
    draw(tree->first_blocks(key), 0, picture);
    return picture;
  }

  std::unique_ptr<BlockPool> pool;
  std::unique_ptr<PrefixTree> tree;

 private:
  void draw(std::span<const BlockId> siblings, size_t depth, std::string& picture) const {
    for (BlockId id : siblings) {
      picture.append(2 * depth, ' ').append(runs_from(tree->tokens_of(id)));
      picture.append(tree->is_in_use(id) ? " *\n" : "\n");
      draw(tree->children_of(id), depth + 1, picture);
    }
  }

  static std::vector<uint64_t> contents_of(const TestSequence& sequence) {
    std::vector<uint64_t> contents;
    uint64_t last = root_hash(sequence.key).low;
    for (TokenId token : sequence.tokens)
      contents.push_back(last = (last ^ static_cast<uint64_t>(raw(token))) * 0x9E3779B97F4A7C15u);
    return contents;
  }
  uint64_t& at(BlockId id, int place) {
    return storage_[static_cast<size_t>(raw(id) * kBlockSize + place)];
  }
  uint64_t& at(const TestSequence& sequence, int position) {
    const BlockId id = sequence.table.block_ids()[static_cast<size_t>(position / kBlockSize)];
    return at(id, position % kBlockSize);
  }

  std::vector<uint64_t> storage_;
};

}  // namespace octavo
