// Where the positions of one sequence lie, the block table of PagedAttention: position p is in
// block block_ids()[p / block_size], at place p % block_size.
//
// Only this class decides that a block may be written. Positions are written once, in ascending
// order, after reserve() has covered them. Blocks can be shared, with other tables through fork()
// and with the prefix tree; a shared block is never written (copy-on-write): reserve() replaces the
// one in which writing goes on and says what to copy.
//
// A table can have more blocks than its positions need: a run taken in advance by reserve_run().
//
// Owned by the engine thread, like its pool, which must outlive it.
#pragma once

#include <span>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "kv/block_pool.h"

namespace octavo {

// Copy the first `filled_tokens` positions (of every layer and head) from one block to another.
struct BlockCopy {
  BlockId from, to;
  int filled_tokens;

  bool operator==(const BlockCopy&) const = default;
};

class BlockTable {
 public:
  explicit BlockTable(BlockPool& pool) : pool_(&pool) {}

  // Grows to `num_tokens` positions and makes the new ones, [old num_tokens(), num_tokens),
  // writable.
  //
  // The caller carries out the returned copies before it writes to any block, those of several
  // tables in the order they were returned: `from` may belong to somebody else by then.
  //
  // Errors, which leave table and pool unchanged: resource_exhausted, naming what is missing;
  // invalid_argument for fewer tokens than there are (use truncate()).
  Result<std::vector<BlockCopy>> reserve(int num_tokens);

  // How many free blocks reserve(num_tokens) would take: for growth, and in place of shared ones.
  // 0 for no more tokens than there are.
  int blocks_to_reserve(int num_tokens) const;

  // Whether the next position lies in a block that others have, too: reserve() would copy.
  bool writes_shared_block() const;

  // Begins with positions that somebody has computed already: num_tokens of them, in `blocks`. They
  // may end inside the last block, which is replaced by a copy once it is written, if it is shared.
  // REQUIRES: an empty table; exactly the blocks that hold num_tokens positions.
  void adopt(std::vector<BlockRef> blocks, int num_tokens);

  // Takes blocks with consecutive ids for num_tokens positions, but makes none of them writable:
  // reserve() does, and takes no further blocks as long as it stays within. Errors: as
  // BlockPool::allocate_run(); invalid_argument for a negative number or a table that has blocks.
  Result<void> reserve_run(int num_tokens);

  // Takes the memory that the table itself needs for `num_tokens` positions; blocks are not taken.
  void make_room(int64_t num_tokens);

  // A second sequence with the same positions in the same blocks.
  BlockTable fork() const;

  // Forgets the positions from `num_tokens` on; blocks without a position left are returned, except
  // those of a reserved run: it stays until the table goes.
  // invalid_argument for a negative number or more tokens than there are.
  Result<void> truncate(int num_tokens);

  int num_tokens() const { return num_tokens_; }
  int num_blocks() const { return static_cast<int>(ids_.size()); }
  // How many blocks become free or cached when this table goes; O(num_blocks()).
  int num_unshared() const;
  // BlockRef::is_last_user() of block i. REQUIRES: 0 <= i < num_blocks().
  bool is_last_user(int i) const { return blocks_[static_cast<size_t>(i)].is_last_user(); }
  // For kernels; valid until the table changes.
  std::span<const BlockId> block_ids() const { return ids_; }

  // For the prefix tree: a further owner of block i, and another block with the same content in its
  // place. REQUIRES: 0 <= i < num_blocks().
  BlockRef share_block(int i) const { return blocks_[static_cast<size_t>(i)].share(); }
  void replace_block(int i, BlockRef equal);

 private:
  // Replaces shared blocks in which positions from num_tokens_ up to num_tokens would be written.
  Result<std::vector<BlockCopy>> unshare(int num_tokens);
  void push_back(BlockRef block);

  BlockPool* pool_;
  std::vector<BlockRef> blocks_;
  std::vector<BlockId> ids_;  // of blocks_, contiguous for kernels
  int num_tokens_ = 0;
  int run_blocks_ = 0;  // the first blocks_ that truncate() keeps
};

}  // namespace octavo
