// K and V that outlive their sequence, found again by their tokens: prefix caching, as
// RadixAttention does it.
//
// A radix tree over token runs. Each node is one block of the pool and holds up to block_size
// tokens that follow those of its parent; a node that is not full is a leaf. Running sequences
// share the blocks of the tree, and it shares theirs: a block that only the tree owns is cached.
//
//   {} ──┬─ [1 2 3 4] #7 ──┬─ [5 6 7 8] #2        one root for each key; #block
//        │                 └─ [5 6 9]   #4
//        └─ [1 3 3 7] #5
//
// Whoever uses a block uses all blocks above it too, so everything cached can be evicted, leaves
// first, and pool.num_cached() is what evict() can free.
//
// Tokens are compared, always; hashes only name blocks elsewhere. Memory: all is bounded by the
// number of blocks and mostly taken at construction (tokens, hashes, a list of evicted blocks).
//
// Owned by the engine thread, like its pool, which must outlive it. One tree to a pool.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "core/ids.h"
#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "kv/prefix_key.h"
#include "kv/prefix_stats.h"

namespace octavo {

enum class EvictionPolicy : uint8_t {
  lru,  // the least recently used leaf goes first
  lfu,  // the least often used; of several the least recently used
};

// Blocks with the first num_tokens of a prompt, for BlockTable::adopt(). They may end inside the
// last block.
struct PrefixMatch {
  std::vector<BlockRef> blocks;
  int num_tokens = 0;
  MissReason miss = MissReason::none;
};

class PrefixTree {
 public:
  PrefixTree(BlockPool& pool, EvictionPolicy policy);
  ~PrefixTree();
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // What acquire() would find; changes and counts nothing. At most tokens.size() - 1 tokens: the
  // last one has to be computed, because logits are not cached.
  struct Lookup {
    int num_tokens = 0;  // the last block is a partial hit if block_size does not divide it
    int num_blocks = 0;
    int num_cached_only = 0;  // of them; they stop being evictable when acquired
  };
  Lookup lookup(const PrefixKey& key, std::span<const TokenId> tokens) const;

  // For a sequence that is about to run: becomes an owner of the blocks found, marks them as used
  // and counts the query.
  enum class Purpose : uint8_t { prompt, recompute };
  PrefixMatch acquire(const PrefixKey& key, std::span<const TokenId> tokens,
                      Purpose purpose = Purpose::prompt);

  // Counts a prompt for which the caller does without the tree (MissReason::skipped).
  void record_skipped() { ++stats_.misses[static_cast<size_t>(MissReason::skipped)]; }

  // Makes the table's first positions findable; `tokens` are theirs, and their K and V are
  // computed. Full blocks only, or with `whole` (the sequence has ended or is preempted) a partial
  // last one too. A block that the tree has already (equal tokens after an equal path, so equal
  // content) takes the place of the table's own. O(new blocks), with `whole` O(blocks).
  //
  // A new block that another table has too is left out, with all behind it: that table may have
  // other blocks before it than the tree, and would use a node without those above. So insert a
  // sequence before it is forked, or its blocks are not found until the last of the forks ends.
  //
  // REQUIRES: tokens.size() <= table.num_tokens(); the key under which the table's first blocks
  // were acquired.
  void insert(const PrefixKey& key, std::span<const TokenId> tokens, BlockTable& table, bool whole);

  // Frees up to num_blocks cached blocks, in the policy's order; returns how many. None for 0 and
  // below.
  int evict(int num_blocks);

  // Keeps what is cached of a prefix, its last token included, from being evicted.
  class Pin {
   public:
    Pin() = default;  // holds nothing
    Pin(Pin&&) noexcept = default;
    Pin& operator=(Pin&&) noexcept = default;

    std::span<const BlockRef> blocks() const { return blocks_; }
    int num_tokens() const { return num_tokens_; }

   private:
    friend class PrefixTree;
    std::vector<BlockRef> blocks_;
    int num_tokens_ = 0;
  };
  Pin pin(const PrefixKey& key, std::span<const TokenId> tokens);

  // Takes a leaf out of the tree, so that its last user may write on in it. REQUIRES: contains(id),
  // no children.
  void forget(BlockId id) { remove_leaf(id); }

  // Forgets everything that nobody uses; not counted as evicted.
  void clear();

  int num_nodes() const { return num_nodes_; }
  const PrefixStats& stats() const { return stats_; }
  bool contains(BlockId id) const { return node(id).block.id() != kNoBlock; }
  // Whether somebody besides the tree owns a block. REQUIRES: contains(id).
  bool is_in_use(BlockId id) const { return node(id).block.is_shared(); }
  // The content hash; for a full block the one that block_hashes() gives. REQUIRES: contains(id).
  const Hash128& hash_of(BlockId id) const { return node(id).hash; }
  // Of a block in the tree; at most block_size. REQUIRES: contains(id).
  std::span<const TokenId> tokens_of(BlockId id) const;
  // Following blocks, in the order of their tokens. REQUIRES: contains(id).
  std::span<const BlockId> children_of(BlockId id) const { return node(id).children; }
  std::span<const BlockId> first_blocks(const PrefixKey& key) const;

  // The id of every handle of the tree, for BlockPool::check(). Those of pins are not among them.
  void append_references(std::vector<BlockId>& references) const;
  // Proves the structure: order, parents, full inner nodes, hashes, candidates for eviction, and
  // that what the pool counts as cached can be evicted. A contradiction is a bug of this program.
  Result<void> check() const;

 private:
  struct Root {
    Hash128 hash;
    std::vector<BlockId> children;
  };
  using Roots = std::map<PrefixKey, Root>;  // only those that have children

  struct Node {
    BlockRef block;  // names no block: there is no such node
    BlockId parent = kNoBlock;
    int num_tokens = 0;
    Roots::iterator root = {};
    std::vector<BlockId> children = {};  // ascending by tokens
    Hash128 hash = {};                   // of its tokens and all before
    int64_t num_uses = 0;
    int64_t last_use = 0;
  };
  // Order of eviction: uses (0 in lru), time of the last one, block.
  using Candidate = std::tuple<int64_t, int64_t, BlockId>;

  // The sibling that shares most tokens with a run, and where the run itself would stand.
  struct Nearest {
    size_t place = 0;
    BlockId id = kNoBlock;
    int num_equal = 0;
  };
  Node& node(BlockId id) { return nodes_[static_cast<size_t>(raw(id))]; }
  const Node& node(BlockId id) const { return nodes_[static_cast<size_t>(raw(id))]; }
  bool is_unused_leaf(BlockId id) const;
  TokenId* token_store(BlockId id) const;
  Roots::iterator root_of(const PrefixKey& key);
  std::vector<BlockId>& children(Roots::iterator root, BlockId parent);
  Hash128 chained_hash(Roots::const_iterator root, BlockId parent,
                       std::span<const TokenId> run) const;
  Nearest nearest(std::span<const BlockId> siblings, std::span<const TokenId> run) const;
  // Calls visit for each block found from the root on; returns the number of tokens found.
  template <class Visit>
  int walk(const PrefixKey& key, std::span<const TokenId> tokens, Visit visit) const;
  int share_path(const PrefixKey& key, std::span<const TokenId> tokens,
                 std::vector<BlockRef>& blocks);
  MissReason why_not_more(const PrefixKey& key, std::span<const TokenId> tokens,
                          const PrefixMatch& match) const;
  size_t evicted_place(const Hash128& hash) const;
  Candidate candidate(BlockId id) const;
  void touch(BlockId id, int num_uses);
  BlockId insert_block(Roots::iterator root, BlockId parent, std::span<const TokenId> run,
                       BlockTable& table, int index);
  void add_leaf(Roots::iterator root, BlockId parent, size_t place, std::span<const TokenId> run,
                BlockRef block);
  void remove_leaf(BlockId id);
  template <class Function>
  int drop_leaves(int num_blocks, Function before_drop);
  Result<void> check_node(BlockId id) const;
  Result<void> check_siblings(std::span<const BlockId> siblings, BlockId parent) const;

  BlockPool& pool_;
  EvictionPolicy policy_;
  std::vector<Node> nodes_;            // per block
  std::unique_ptr<TokenId[]> tokens_;  // [num_blocks][block_size]; the system gives memory on use
  Roots roots_;
  std::set<Candidate> candidates_;  // all leaves, those in use too
  std::vector<Hash128> evicted_;    // at a place given by the hash, the last one to be there
  int64_t clock_ = 0;               // counts uses
  int num_nodes_ = 0;
  PrefixStats stats_;
};

}  // namespace octavo
