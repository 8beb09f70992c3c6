#include "model/step_inputs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kv/block_size.h"

namespace octavo {
namespace {

// With at least this many works per thread, whole works are shares equal enough.
constexpr int kWorksPerThread = 4;

int parts_of(int positions) { return (positions + kernels::kSplit - 1) / kernels::kSplit; }

}  // namespace

Result<StepInputs> StepInputs::create(const ModelConfig& config, int block_size,
                                      int max_num_batched_tokens, int max_threads) {
  StepInputs inputs;
  inputs.num_heads_ = config.num_heads;
  inputs.num_kv_heads_ = config.num_kv_heads;
  inputs.head_dim_ = config.head_dim;
  inputs.block_size_ = block_size;
  inputs.blocks_per_context_ = static_cast<size_t>(blocks_for(config.context_length, block_size));
  inputs.places_.reserve(static_cast<size_t>(max_num_batched_tokens));
  inputs.kept_rows_.reserve(static_cast<size_t>(max_num_batched_tokens));
  const auto split_works = static_cast<size_t>(kWorksPerThread * max_threads);
  const auto floats = split_works * static_cast<size_t>(parts_of(config.context_length)) *
                      kernels::kMaxAttentionRows * static_cast<size_t>(config.head_dim + 2);
  OCTAVO_TRY(inputs.partials_,
             AlignedBuffer::allocate(floats * sizeof(float), AlignedBuffer::Use::sparse));
  inputs.parts_done_ = std::make_unique<std::atomic<int>[]>(split_works);
  return inputs;
}

void StepInputs::set(const ForwardBatch& batch, const StepBuffers& buffers, int threads) {
  tokens_ = batch.tokens;
  kept_rows_.resize(static_cast<size_t>(batch.num_logits_rows()));
  if (batch.logits_rows)
    std::copy(batch.logits_rows->begin(), batch.logits_rows->end(), kept_rows_.begin());
  else
    std::iota(kept_rows_.begin(), kept_rows_.end(), 0);
  place_rows(batch);
  plan_attention(batch, buffers);
  split_attention(threads);
}

void StepInputs::place_rows(const ForwardBatch& batch) {
  places_.clear();
  for (const BatchSequence& s : batch.sequences)
    for (int p = s.first_position; p < s.first_position + s.num_tokens; ++p)
      places_.push_back({p, raw(s.block_table[static_cast<size_t>(p / block_size_)])});
}

void StepInputs::plan_attention(const ForwardBatch& batch, const StepBuffers& buffers) {
  tables_.clear();
  works_.clear();
  size_t blocks = 0;
  for (const BatchSequence& s : batch.sequences) blocks += s.block_table.size();
  // Works point into it. Room for whole contexts: growing sequences need no more later.
  if (blocks > tables_.capacity())
    tables_.reserve(std::max(blocks, batch.sequences.size() * blocks_per_context_));
  for (const BatchSequence& s : batch.sequences) {
    const int32_t* table = tables_.data() + tables_.size();
    for (BlockId block : s.block_table) tables_.push_back(raw(block));
    plan_sequence(s, table, buffers);
  }
}

void StepInputs::plan_sequence(const BatchSequence& s, const int32_t* table,
                               const StepBuffers& buffers) {
  const int group = num_heads_ / num_kv_heads_;
  const int heads_per_item = std::min(group, kernels::kMaxAttentionRows);
  const int tile = kernels::kMaxAttentionRows / heads_per_item;
  const int64_t q_dim = int64_t{num_heads_} * head_dim_;
  for (int first = 0; first < s.num_tokens; first += tile)
    for (int head = 0; head < num_heads_;) {
      const int in_group = std::min(heads_per_item, group - head % group);
      const int tokens = std::min(tile, s.num_tokens - first);
      const int64_t offset = (s.first_row + first) * q_dim + int64_t{head} * head_dim_;
      works_.push_back({.item = {.kv = nullptr,
                                 .block_table = table,
                                 .kv_head = head / group,
                                 .group = in_group,
                                 .tokens = tokens,
                                 .first_position = s.first_position + first,
                                 .window = 0,
                                 .scale = 1.0f / std::sqrt(static_cast<float>(head_dim_)),
                                 .q = buffers.q + offset,
                                 .q_stride = q_dim,
                                 .out = buffers.attended + offset,
                                 .out_stride = q_dim,
                                 .part = kernels::kAllParts,
                                 .partial = nullptr},
                        .row = s.first_row + first,
                        .parts = parts_of(s.first_position + first + tokens)});
      head += in_group;
    }
}

void StepInputs::split_attention(int threads) {
  parts_ = 1;
  if (threads == 1 || works_.size() >= static_cast<size_t>(kWorksPerThread * threads)) return;
  float* partial = reinterpret_cast<float*>(partials_.data());
  for (AttentionWork& work : works_) {
    parts_ = std::max(parts_, work.parts);
    work.item.partial = partial;
    partial += int64_t{work.parts} * work.item.tokens * work.item.group * (head_dim_ + 2);
  }
}

StepInputs::Unit StepInputs::unit(int64_t index) const {
  if (parts_ == 1)  // later tokens of a sequence see more
    return {&works_[works_.size() - 1 - static_cast<size_t>(index)], kernels::kAllParts};
  const AttentionWork& work = works_[static_cast<size_t>(index / parts_)];
  const auto part = static_cast<int>(index % parts_);
  return {part < work.parts ? &work : nullptr, part};
}

bool StepInputs::was_last_part(const AttentionWork& work) {
  std::atomic<int>& done = parts_done_[static_cast<size_t>(&work - works_.data())];
  if (done.fetch_add(1, std::memory_order_acq_rel) + 1 < work.parts) return false;
  done.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace octavo
