#include "kv/block_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kv/block_size.h"

namespace octavo {

Result<std::vector<BlockCopy>> BlockTable::reserve(int num_tokens) {
  if (num_tokens < num_tokens_)
    return fail(ErrorCode::invalid_argument,
                fmt::format("cannot reserve {} tokens: the sequence already has {}", num_tokens,
                            num_tokens_));
  const int missing = blocks_to_reserve(num_tokens);
  if (missing > pool_->num_free())
    return fail(
        ErrorCode::resource_exhausted,
        fmt::format("{} tokens need {} more KV blocks, but only {} of {} are free; give the "
                    "cache more memory or shorten the sequence",
                    num_tokens, missing, pool_->num_free(), pool_->num_blocks()));

  OCTAVO_TRY(std::vector<BlockCopy> copies, unshare(num_tokens));
  while (std::cmp_less(blocks_.size(), blocks_for(num_tokens, pool_->block_size()))) {
    OCTAVO_TRY(BlockRef fresh, pool_->allocate());
    push_back(std::move(fresh));
  }
  num_tokens_ = num_tokens;
  return copies;
}

int BlockTable::blocks_to_reserve(int num_tokens) const {
  if (num_tokens <= num_tokens_) return 0;
  const auto total = static_cast<int>(blocks_for(num_tokens, pool_->block_size()));
  int missing = std::max(0, total - num_blocks());
  for (int i = num_tokens_ / pool_->block_size(); i < std::min(total, num_blocks()); ++i)
    missing += blocks_[static_cast<size_t>(i)].is_shared();
  return missing;
}

Result<std::vector<BlockCopy>> BlockTable::unshare(int num_tokens) {
  std::vector<BlockCopy> copies;
  const int size = pool_->block_size();
  const int end = std::min(static_cast<int>(blocks_for(num_tokens, size)), num_blocks());
  for (int i = num_tokens_ / size; i < end; ++i) {
    if (!blocks_[static_cast<size_t>(i)].is_shared()) continue;
    OCTAVO_TRY(BlockRef fresh, pool_->allocate());
    const int filled = std::max(0, num_tokens_ - i * size);
    if (filled > 0) copies.push_back({ids_[static_cast<size_t>(i)], fresh.id(), filled});
    replace_block(i, std::move(fresh));
  }
  return copies;
}

bool BlockTable::writes_shared_block() const {
  const int filled = num_tokens_ % pool_->block_size();
  return filled > 0 && blocks_[static_cast<size_t>(num_tokens_ / pool_->block_size())].is_shared();
}

void BlockTable::adopt(std::vector<BlockRef> blocks, int num_tokens) {
  for (BlockRef& block : blocks) push_back(std::move(block));
  num_tokens_ = num_tokens;
}

Result<void> BlockTable::reserve_run(int num_tokens) {
  if (num_tokens < 0 || !blocks_.empty())
    return fail(ErrorCode::invalid_argument,
                fmt::format("cannot reserve a run of {} tokens: the sequence has {} blocks",
                            num_tokens, num_blocks()));
  const auto count = static_cast<int>(blocks_for(num_tokens, pool_->block_size()));
  OCTAVO_TRY(std::vector<BlockRef> run, pool_->allocate_run(count));
  adopt(std::move(run), 0);
  run_blocks_ = count;
  return {};
}

void BlockTable::make_room(int64_t num_tokens) {
  const auto blocks = static_cast<size_t>(blocks_for(num_tokens, pool_->block_size()));
  blocks_.reserve(blocks);
  ids_.reserve(blocks);
}

BlockTable BlockTable::fork() const {
  BlockTable twin(*pool_);
  const auto used = static_cast<size_t>(blocks_for(num_tokens_, pool_->block_size()));
  for (size_t i = 0; i < used; ++i) twin.push_back(blocks_[i].share());
  twin.num_tokens_ = num_tokens_;
  return twin;
}

Result<void> BlockTable::truncate(int num_tokens) {
  if (num_tokens < 0 || num_tokens > num_tokens_)
    return fail(ErrorCode::invalid_argument,
                fmt::format("cannot cut a sequence of {} tokens to {}", num_tokens_, num_tokens));
  const int64_t used = blocks_for(num_tokens, pool_->block_size());
  while (num_blocks() > std::max<int64_t>(used, run_blocks_)) {
    blocks_.pop_back();
    ids_.pop_back();
  }
  num_tokens_ = num_tokens;
  return {};
}

int BlockTable::num_unshared() const {
  return static_cast<int>(std::ranges::count_if(blocks_, &BlockRef::is_last_user));
}

void BlockTable::replace_block(int i, BlockRef equal) {
  ids_[static_cast<size_t>(i)] = equal.id();
  blocks_[static_cast<size_t>(i)] = std::move(equal);
}

void BlockTable::push_back(BlockRef block) {
  ids_.push_back(block.id());
  blocks_.push_back(std::move(block));
}

}  // namespace octavo
