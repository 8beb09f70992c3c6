#include "kv/block_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "kv/block_size.h"

namespace octavo {
namespace {

size_t index(BlockId id) { return static_cast<size_t>(raw(id)); }

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

bool BlockRef::is_shared() const { return pool_->owners_[index(id_)] > 1; }

bool BlockRef::is_last_user() const {
  return pool_->owners_[index(id_)] - pool_->in_tree_[index(id_)] == 1;
}

Result<std::unique_ptr<BlockPool>> BlockPool::create(int num_blocks, int block_size) {
  OCTAVO_CHECK_OK(check_block_size(block_size));
  if (num_blocks < 1 || num_blocks > kMaxBlocks)
    return fail(ErrorCode::invalid_argument,
                fmt::format("a KV cache of {} blocks is not possible; allowed: 1 to {}", num_blocks,
                            kMaxBlocks));
  return std::unique_ptr<BlockPool>(new BlockPool(num_blocks, block_size));
}

BlockPool::BlockPool(int num_blocks, int block_size)
    : block_size_(block_size),
      owners_(static_cast<size_t>(num_blocks), 0),
      in_tree_(owners_.size(), 0) {
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

Result<std::vector<BlockRef>> BlockPool::allocate_run(int count) {
  const auto wanted = std::search_n(owners_.begin(), owners_.end(), count, 0);
  if (wanted == owners_.end() && count > 0)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} KV blocks in a row are needed; {} of {} are free, but at most {} "
                            "in a row; give the cache more memory or choose the paged layout",
                            count, num_free(), num_blocks(), longest_free_run()));
  const auto first = static_cast<int>(wanted - owners_.begin());
  std::erase_if(free_, [&](BlockId id) { return raw(id) >= first && raw(id) < first + count; });
  std::vector<BlockRef> run;
  run.reserve(static_cast<size_t>(count));
  for (int id = first; id < first + count; ++id) run.push_back(BlockRef(*this, BlockId{id}));
  return run;
}

int BlockPool::longest_free_run() const {
  int longest = 0, length = 0;
  for (int32_t owners : owners_) {
    length = owners == 0 ? length + 1 : 0;
    longest = std::max(longest, length);
  }
  return longest;
}

void BlockPool::set_in_tree(const BlockRef& block, bool in_tree) {
  uint8_t& mark = in_tree_[index(block.id())];
  if (owners_[index(block.id())] == 1) num_cached_ += in_tree - mark;
  mark = in_tree;
}

void BlockPool::add_owner(BlockId id) {
  if (++owners_[index(id)] == 2) num_cached_ -= in_tree_[index(id)];
}

void BlockPool::drop_owner(BlockId id) {
  const int32_t left = --owners_[index(id)];
  if (left == 1) num_cached_ += in_tree_[index(id)];
  if (left == 0) free_.push_back(id);
}

Result<void> BlockPool::check() const {
  return check_blocks(owners_, in_tree_, free_, num_cached_);
}

Result<void> BlockPool::check(std::span<const BlockId> references) const {
  OCTAVO_CHECK_OK(check());
  std::vector<int32_t> counted(owners_.size(), 0);
  for (BlockId id : references) {
    if (raw(id) < 0 || raw(id) >= num_blocks()) return inconsistent(id, "does not exist");
    ++counted[index(id)];
  }
  for (size_t i = 0; i < counted.size(); ++i)
    if (counted[i] != owners_[i])
      return inconsistent(
          BlockId{static_cast<int32_t>(i)},
          fmt::format("has {} references, but counts {} owners", counted[i], owners_[i]));
  return {};
}

Result<void> check_blocks(std::span<const int32_t> owners, std::span<const uint8_t> in_tree,
                          std::span<const BlockId> free, int num_cached) {
  std::vector<bool> listed(owners.size(), false);
  for (BlockId id : free) {
    const size_t i = index(id);
    if (raw(id) < 0 || i >= owners.size()) return inconsistent(id, "is free, but does not exist");
    if (listed[i]) return inconsistent(id, "is in the free list twice");
    listed[i] = true;
  }
  int cached = 0;
  for (size_t i = 0; i < owners.size(); ++i) {
    const BlockId id{static_cast<int32_t>(i)};
    if (owners[i] < 0) return inconsistent(id, "has been returned more often than taken");
    if (listed[i] && owners[i] > 0) return inconsistent(id, "is free and has an owner");
    if (!listed[i] && owners[i] == 0) return inconsistent(id, "is neither free nor held");
    if (in_tree[i] && owners[i] == 0) return inconsistent(id, "is in the prefix tree, but free");
    cached += in_tree[i] && owners[i] == 1;
  }
  if (cached != num_cached)
    return fail(ErrorCode::invalid_argument,
                fmt::format("the block pool is inconsistent: {} blocks are cached, but {} counted",
                            cached, num_cached));
  return {};
}

}  // namespace octavo
