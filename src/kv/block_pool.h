// Which KV blocks are free and how many owners each held one has: bookkeeping on integers. The
// memory behind the blocks belongs to the storage, which is indexed by BlockId.
//
// A block is free or held. A held block has one or more owners, each with a BlockRef; when the last
// one goes, the block is free. There is no other way to return a block, so it cannot be returned
// twice or forgotten.
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

  int num_blocks() const { return static_cast<int>(owners_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }
  int num_held() const { return num_blocks() - num_free(); }
  int block_size() const { return block_size_; }

  // Proves that each block is either free (listed once, no owner) or held (not listed, an owner or
  // more). A contradiction is a bug of this program; the error names the block.
  Result<void> check() const;
  // Also proves that the owners are exactly `references`: the id of every living handle, once for
  // each.
  Result<void> check(std::span<const BlockId> references) const;

 private:
  friend class BlockRef;
  BlockPool(int num_blocks, int block_size);
  void add_owner(BlockId id) { ++owners_[static_cast<size_t>(raw(id))]; }
  void drop_owner(BlockId id);

  int block_size_;
  std::vector<int32_t> owners_;  // per block; 0 if free
  std::vector<BlockId> free_;    // a stack: the next one to give out is last
};

// What BlockPool::check() proves, on plain data.
Result<void> check_blocks(std::span<const int32_t> owners, std::span<const BlockId> free);

}  // namespace octavo
