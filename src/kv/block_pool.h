// Which KV blocks are free and how many owners each held one has, the paged KV cache of
// PagedAttention: bookkeeping on integers. The
// memory behind the blocks belongs to the storage, which is indexed by BlockId.
//
// A block is free, held or cached. Each owner of a block has a BlockRef; when the last one goes,
// the block is free. There is no other way to return a block, so it cannot be returned twice or
// forgotten. A block whose only owner is the prefix tree is cached: nobody uses it, but what it
// holds may be wanted again. All others that have an owner are held.
//
// Single-threaded: pool and handles are used by one thread. The pool does not move and must outlive
// its handles.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/ids.h"

namespace octavo {

class BlockPool;

// One owner's share of a held block. A moved-from or default handle names no block.
class BlockRef {
 public:
  BlockRef() = default;
  BlockRef(BlockRef&& other) noexcept;
  BlockRef& operator=(BlockRef&& other) noexcept;
  ~BlockRef();

  BlockId id() const { return id_; }  // kNoBlock if it names none
  // A further owner of the same block. REQUIRES: names a block.
  BlockRef share() const;
  // Whether there are other owners; then the block must not be written. REQUIRES: names a block.
  bool is_shared() const;
  // Whether nobody but this owner and, if it has the block, the prefix tree owns it: then the block
  // becomes free or cached with it. REQUIRES: names a block; not asked by the tree.
  bool is_last_user() const;

 private:
  friend class BlockPool;
  BlockRef(BlockPool& pool, BlockId id);  // adds an owner

  BlockPool* pool_ = nullptr;
  BlockId id_ = kNoBlock;
};

class BlockPool {
 public:
  // A bound far above any real cache (268 million tokens in blocks of 16), so that a wrong number
  // is an error here and not a failed allocation.
  static constexpr int kMaxBlocks = 1 << 24;

  // Errors: invalid_argument for a number outside 1 to kMaxBlocks or a block size that is not
  // allowed.
  static Result<std::unique_ptr<BlockPool>> create(int num_blocks, int block_size);

  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  // The block returned last is given out first, while its memory is still in the CPU's cache;
  // blocks never used follow in ascending order. resource_exhausted if none is free.
  Result<BlockRef> allocate();

  // `count` blocks with consecutive ids, the lowest there are; O(num_blocks). resource_exhausted,
  // naming the free blocks and their longest run, if no run is long enough. REQUIRES: count >= 0.
  Result<std::vector<BlockRef>> allocate_run(int count);

  // num_free() + num_held() + num_cached() = num_blocks(), each known at once.
  int num_blocks() const { return static_cast<int>(owners_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }
  int num_held() const { return num_blocks() - num_free() - num_cached_; }
  int num_cached() const { return num_cached_; }
  int block_size() const { return block_size_; }
  int longest_free_run() const;  // O(num_blocks)

  // Says that `block` is the prefix tree's own handle, or that it no longer is (before it goes).
  // For the tree alone; there is at most one tree to a pool.
  void set_in_tree(const BlockRef& block, bool in_tree);
  bool is_in_tree(BlockId id) const { return in_tree_[static_cast<size_t>(raw(id))] != 0; }

  // Proves that each block is free (listed once, no owner, not in the tree) or has an owner or more
  // (not listed), and that cached blocks are counted right. A contradiction is a bug of this
  // program; the error names the block.
  Result<void> check() const;
  // Also proves that the owners are exactly `references`: the id of every living handle, once for
  // each.
  Result<void> check(std::span<const BlockId> references) const;

 private:
  friend class BlockRef;
  BlockPool(int num_blocks, int block_size);
  void add_owner(BlockId id);
  void drop_owner(BlockId id);

  int block_size_;
  int num_cached_ = 0;            // in the tree, with one owner
  std::vector<int32_t> owners_;   // per block; 0 if free
  std::vector<uint8_t> in_tree_;  // per block; whether one of the owners is the prefix tree
  std::vector<BlockId> free_;     // a stack: the next one to give out is last
};

// What BlockPool::check() proves, on plain data.
Result<void> check_blocks(std::span<const int32_t> owners, std::span<const uint8_t> in_tree,
                          std::span<const BlockId> free, int num_cached);

}  // namespace octavo
