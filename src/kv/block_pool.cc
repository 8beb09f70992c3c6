#include "kv/block_pool.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "kv/block_size.h"

namespace octavo {
namespace {

tl::unexpected<Error> inconsistent(BlockId id, std::string_view what) {
  return fail(ErrorCode::invalid_argument,
              fmt::format("the block pool is inconsistent: block {} {}", raw(id), what));
}

}  // namespace

BlockRef::BlockRef(BlockPool& pool, BlockId id) : pool_(&pool), id_(id) { pool.add_owner(id); }

BlockRef::BlockRef(BlockRef&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), id_(std::exchange(other.id_, kNoBlock)) {}

BlockRef& BlockRef::operator=(BlockRef&& other) noexcept {
  BlockRef taken(std::move(other));
  std::swap(pool_, taken.pool_);
  std::swap(id_, taken.id_);
  return *this;
}

BlockRef::~BlockRef() {
  if (pool_) pool_->drop_owner(id_);
}

BlockRef BlockRef::share() const { return BlockRef(*pool_, id_); }

bool BlockRef::is_shared() const { return pool_->owners_[static_cast<size_t>(raw(id_))] > 1; }

Result<std::unique_ptr<BlockPool>> BlockPool::create(int num_blocks, int block_size) {
  OCTAVO_CHECK_OK(check_block_size(block_size));
  if (num_blocks < 1 || num_blocks > kMaxBlocks)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a KV cache of {} blocks is not possible; allowed: 1 to {}", num_blocks,
                            kMaxBlocks));
  return std::unique_ptr<BlockPool>(new BlockPool(num_blocks, block_size));
}

BlockPool::BlockPool(int num_blocks, int block_size)
    : block_size_(block_size), owners_(static_cast<size_t>(num_blocks), 0) {
  free_.reserve(owners_.size());  // so that returning a block never allocates
  for (int id = num_blocks - 1; id >= 0; --id) free_.push_back(BlockId{id});
}

Result<BlockRef> BlockPool::allocate() {
  if (free_.empty())
    return fail(ErrorCode::resource_exhausted,
                fmt::format("all {} KV blocks of {} tokens are in use; give the cache more memory",
                            num_blocks(), block_size_));
  const BlockId id = free_.back();
  free_.pop_back();
  return BlockRef(*this, id);
}

void BlockPool::drop_owner(BlockId id) {
  if (--owners_[static_cast<size_t>(raw(id))] == 0) free_.push_back(id);
}

Result<void> BlockPool::check() const { return check_blocks(owners_, free_); }

Result<void> BlockPool::check(std::span<const BlockId> references) const {
  OCTAVO_CHECK_OK(check());
  std::vector<int32_t> counted(owners_.size(), 0);
  for (BlockId id : references) {
    if (raw(id) < 0 || raw(id) >= num_blocks()) return inconsistent(id, "does not exist");
    ++counted[static_cast<size_t>(raw(id))];
  }
  for (size_t i = 0; i < counted.size(); ++i)
    if (counted[i] != owners_[i])
      return inconsistent(
          BlockId{static_cast<int32_t>(i)},
          fmt::format("has {} references, but counts {} owners", counted[i], owners_[i]));
  return {};
}

Result<void> check_blocks(std::span<const int32_t> owners, std::span<const BlockId> free) {
  std::vector<bool> listed(owners.size(), false);
  for (BlockId id : free) {
    const auto i = static_cast<size_t>(raw(id));
    if (raw(id) < 0 || i >= owners.size()) return inconsistent(id, "is free, but does not exist");
    if (listed[i]) return inconsistent(id, "is in the free list twice");
    listed[i] = true;
  }
  for (size_t i = 0; i < owners.size(); ++i) {
    const BlockId id{static_cast<int32_t>(i)};
    if (owners[i] < 0) return inconsistent(id, "has been returned more often than taken");
    if (listed[i] && owners[i] > 0) return inconsistent(id, "is free and has an owner");
    if (!listed[i] && owners[i] == 0) return inconsistent(id, "is neither free nor held");
  }
  return {};
}

}  // namespace octavo
