#include "kv/block_table.h"

#include <fmt/format.h>

#include <utility>

#include "kv/block_size.h"

namespace octavo {

Result<std::vector<BlockCopy>> BlockTable::reserve(int num_tokens) {
  if (num_tokens < num_tokens_)
    return fail(ErrorCode::invalid_argument,
                fmt::format("cannot reserve {} tokens: the sequence already has {}", num_tokens,
                            num_tokens_));
  std::vector<BlockCopy> copies;
  if (num_tokens == num_tokens_) return copies;

  const bool copy = must_copy();
  const int64_t total = blocks_for(num_tokens, pool_->block_size());
  const int64_t missing = total - static_cast<int64_t>(blocks_.size()) + (copy ? 1 : 0);
  if (missing > pool_->num_free())
    return fail(
        ErrorCode::resource_exhausted,
        fmt::format("{} tokens need {} more KV blocks, but only {} of {} are free; give the "
                    "cache more memory or shorten the sequence",
                    num_tokens, missing, pool_->num_free(), pool_->num_blocks()));

  if (copy) {
    OCTAVO_TRY(BlockRef fresh, pool_->allocate());
    copies.push_back(replace_last(std::move(fresh)));
  }
  while (std::cmp_less(blocks_.size(), total)) {
    OCTAVO_TRY(BlockRef fresh, pool_->allocate());
    push_back(std::move(fresh));
  }
  num_tokens_ = num_tokens;
  return copies;
}

void BlockTable::make_room(int64_t num_tokens) {
  const auto blocks = static_cast<size_t>(blocks_for(num_tokens, pool_->block_size()));
  blocks_.reserve(blocks);
  ids_.reserve(blocks);
}

BlockTable BlockTable::fork() const {
  BlockTable twin(*pool_);
  for (const BlockRef& block : blocks_) twin.push_back(block.share());
  twin.num_tokens_ = num_tokens_;
  return twin;
}

Result<void> BlockTable::truncate(int num_tokens) {
  if (num_tokens < 0 || num_tokens > num_tokens_)
    return fail(ErrorCode::invalid_argument,
                fmt::format("cannot cut a sequence of {} tokens to {}", num_tokens_, num_tokens));
  const auto kept = static_cast<size_t>(blocks_for(num_tokens, pool_->block_size()));
  while (blocks_.size() > kept) {
    blocks_.pop_back();
    ids_.pop_back();
  }
  num_tokens_ = num_tokens;
  return {};
}

bool BlockTable::must_copy() const {
  return num_tokens_ % pool_->block_size() != 0 && blocks_.back().is_shared();
}

BlockCopy BlockTable::replace_last(BlockRef fresh) {
  const BlockCopy copy{ids_.back(), fresh.id(), num_tokens_ % pool_->block_size()};
  ids_.back() = fresh.id();
  blocks_.back() = std::move(fresh);
  return copy;
}

void BlockTable::push_back(BlockRef block) {
  ids_.push_back(block.id());
  blocks_.push_back(std::move(block));
}

}  // namespace octavo
