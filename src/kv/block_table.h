// Where the positions of one sequence lie: position p is in block block_ids()[p / block_size], at
// place p % block_size.
//
// Only this class decides that a block may be written. Positions are written once, in ascending
// order, after reserve() has covered them. Blocks can be shared with other tables through fork(); a
// shared block is never written: reserve() replaces the one in which writing goes on and says what
// to copy.
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

  // Takes the memory that the table itself needs for `num_tokens` positions; blocks are not taken.
  void make_room(int64_t num_tokens);

  // A second sequence with the same positions in the same blocks.
  BlockTable fork() const;

  // Forgets the positions from `num_tokens` on; blocks without a position left are returned.
  // invalid_argument for a negative number or more tokens than there are.
  Result<void> truncate(int num_tokens);

  int num_tokens() const { return num_tokens_; }
  // For kernels; valid until the table changes.
  std::span<const BlockId> block_ids() const { return ids_; }

 private:
  // Whether writing position num_tokens_ would touch a block that others own too.
  bool must_copy() const;
  BlockCopy replace_last(BlockRef fresh);
  void push_back(BlockRef block);

  BlockPool* pool_;
  std::vector<BlockRef> blocks_;
  std::vector<BlockId> ids_;  // of blocks_, contiguous for kernels
  int num_tokens_ = 0;
};

}  // namespace octavo
