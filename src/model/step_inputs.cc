#include "model/step_inputs.h"

#include <algorithm>
#include <numeric>

#include "kv/block_size.h"

namespace octavo {
namespace {

// With at least this many works per thread, whole works are shares equal enough.
constexpr int kWorksPerThread = 4;

// Memory for shared parts, of which only what is used is taken. Where it ends, sharing ends.
constexpr int64_t kSharedFloats = int64_t{1} << 24;

int parts_of(int positions) { return (positions + kernels::kSplit - 1) / kernels::kSplit; }

void add_run(std::vector<LoraRun>& runs, int first_row, int num_rows, const LoraAdapter* adapter) {
  if (!adapter || num_rows == 0) return;
  const bool goes_on = !runs.empty() && runs.back().adapter == adapter &&
                       runs.back().first_row + runs.back().num_rows == first_row;
  if (goes_on)
    runs.back().num_rows += num_rows;
  else
    runs.push_back({first_row, num_rows, adapter});
}

}  // namespace

Result<StepInputs> StepInputs::create(const ModelConfig& config, int block_size,
                                      int max_num_batched_tokens, int max_threads,
                                      bool share_prefixes) {
  StepInputs inputs;
  inputs.is_encoder_ = config.architecture->encoder;
  share_prefixes &= !inputs.is_encoder_;
  inputs.num_heads_ = config.num_heads;
  inputs.num_kv_heads_ = config.num_kv_heads;
  inputs.head_dim_ = config.head_dim;
  inputs.score_scale_ = config.score_scale;
  inputs.score_cap_ = config.score_cap;
  inputs.block_size_ = block_size;
  inputs.blocks_per_context_ = static_cast<size_t>(blocks_for(config.context_length, block_size));
  inputs.places_.reserve(static_cast<size_t>(max_num_batched_tokens));
  inputs.kept_rows_.reserve(static_cast<size_t>(max_num_batched_tokens));
  const int64_t split_works = int64_t{kWorksPerThread} * max_threads;
  const int64_t parts = parts_of(config.context_length);
  if (share_prefixes)
    inputs.max_shared_floats_ =
        std::min(kSharedFloats, parts * inputs.partial_floats(max_num_batched_tokens));
  const int64_t floats =
      std::max(inputs.max_shared_floats_,
               split_works * parts * kernels::kMaxAttentionRows * (config.head_dim + 2));
  OCTAVO_TRY(inputs.partials_, AlignedBuffer::allocate(static_cast<size_t>(floats) * sizeof(float),
                                                       AlignedBuffer::Use::sparse));
  inputs.parts_done_ = std::make_unique<std::atomic<int>[]>(static_cast<size_t>(split_works));
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
  find_lora_runs(batch);
  plan_attention(batch, buffers);
  share_attention(batch);
  split_attention(threads);
  give_partials();
}

void StepInputs::place_rows(const ForwardBatch& batch) {
  places_.clear();
  copies_.clear();
  for (const BatchSequence& s : batch.sequences) {
    for (int p = s.first_position; p < s.first_position + s.num_tokens; ++p)
      places_.push_back(place_of(s, p));
    place_ancestors(s);
  }
  std::ranges::stable_sort(copies_, {}, &RowCopy::row);
}

void StepInputs::place_ancestors(const BatchSequence& s) {
  int position = s.first_position - static_cast<int>(s.ancestors.size());
  for (const int row : s.ancestors) copies_.push_back({row, place_of(s, position++)});
}

RowPlace StepInputs::place_of(const BatchSequence& s, int position) const {
  return {position, raw(s.block_table[static_cast<size_t>(position / block_size_)])};
}

void StepInputs::find_lora_runs(const ForwardBatch& batch) {
  runs_.clear();
  kept_runs_.clear();
  size_t kept = 0;  // rows before the sequence
  for (const BatchSequence& s : batch.sequences) {
    const size_t first_kept = kept;
    while (kept < kept_rows_.size() && kept_rows_[kept] < s.first_row + s.num_tokens) ++kept;
    add_run(runs_, s.first_row, s.num_tokens, s.adapter);
    add_run(kept_runs_, static_cast<int>(first_kept), static_cast<int>(kept - first_kept),
            s.adapter);
  }
}

void StepInputs::plan_attention(const ForwardBatch& batch, const StepBuffers& buffers) {
  tables_.clear();
  works_.clear();
  first_works_.clear();
  size_t blocks = 0;
  for (const BatchSequence& s : batch.sequences) blocks += s.block_table.size();
  // Works point into it. Room for whole contexts: growing sequences need no more later.
  if (blocks > tables_.capacity())
    tables_.reserve(std::max(blocks, batch.sequences.size() * blocks_per_context_));
  for (const BatchSequence& s : batch.sequences) {
    const int32_t* table = tables_.data() + tables_.size();
    for (BlockId block : s.block_table) tables_.push_back(raw(block));
    first_works_.push_back(static_cast<int>(works_.size()));
    plan_sequence(s, table, buffers);
  }
}

void StepInputs::plan_sequence(const BatchSequence& s, const int32_t* table,
                               const StepBuffers& buffers) {
  const int group = num_heads_ / num_kv_heads_;
  const int tile = tokens_per_item();
  const int64_t q_dim = int64_t{num_heads_} * head_dim_;
  for (int first = 0; first < s.num_tokens; first += tile)
    for (int head = 0; head < num_heads_;) {
      const int in_group = std::min(heads_per_item(), group - head % group);
      const int tokens = std::min(tile, s.num_tokens - first);
      const int end = is_encoder_ ? s.num_tokens : first + tokens;  // of what is seen
      const int64_t offset = (s.first_row + first) * q_dim + int64_t{head} * head_dim_;
      works_.push_back(
          {.item = {.kv = nullptr,
                    .block_table = table,
                    .kv_head = head / group,
                    .group = in_group,
                    .tokens = tokens,
                    .first_position = s.first_position + (is_encoder_ ? end - 1 : first),
                    .window = 0,
                    .scale = score_scale_,
                    .q = buffers.q + offset,
                    .q_stride = q_dim,
                    .out = buffers.attended + offset,
                    .out_stride = q_dim,
                    .part = kernels::kAllParts,
                    .partial = nullptr,
                    .score_cap = score_cap_,
                    .step = is_encoder_ ? 0 : 1},
           .row = s.first_row + first,
           .parts = parts_of(s.first_position + end)});
      head += in_group;
    }
}

// Sequences with more tokens than one item holds read K and V seldom enough as it is.
void StepInputs::share_attention(const ForwardBatch& batch) {
  holders_.clear();
  sharing_.clear();
  shared_units_.clear();
  if (max_shared_floats_ == 0) return;
  shared_floats_left_ = max_shared_floats_;
  const int blocks_per_part = kernels::kSplit / block_size_;
  const int32_t* table = tables_.data();
  for (const BatchSequence& s : batch.sequences) {
    const int parts = s.first_position / kernels::kSplit;  // whole, before its tokens
    if (parts > 0 && s.num_tokens <= tokens_per_item())
      holders_.push_back({.blocks = {table, static_cast<size_t>(parts * blocks_per_part)},
                          .index = static_cast<int>(&s - batch.sequences.data())});
    table += s.block_table.size();
  }
  find_shared_parts(holders_, blocks_per_part, shared_parts_);
  for (const SharedParts& shared : shared_parts_) share_parts(shared);
}

void StepInputs::share_parts(const SharedParts& shared) {
  const auto first_holder = holders_.begin() + shared.first_holder;
  const std::span holders(first_holder,
                          static_cast<size_t>(shared.last_holder - shared.first_holder));
  int64_t tokens = 0;
  for (const PrefixHolder& holder : holders) {
    const kernels::AttentionItem& item = works_of(holder).front().item;
    if (item.parts_done < shared.first_part) return;  // memory ended before
    tokens += item.tokens;
  }
  const int64_t room = shared_floats_left_ / partial_floats(tokens);
  const int parts = static_cast<int>(std::min<int64_t>(room, shared.last_part - shared.first_part));
  shared_floats_left_ -= parts * partial_floats(tokens);
  for (const PrefixHolder& holder : holders)
    for (AttentionWork& work : works_of(holder)) work.item.parts_done = shared.first_part + parts;
  plan_shared_units(holders, shared.first_part, shared.first_part + parts);
}

// A window moves with the position: tokens are ordered by it.
void StepInputs::plan_shared_units(std::span<const PrefixHolder> holders, int first_part,
                                   int last_part) {
  const auto first = static_cast<int>(sharing_.size());
  for (const PrefixHolder& holder : holders) {
    const kernels::AttentionItem& item = works_of(holder).front().item;
    for (int token = 0; token < item.tokens; ++token)
      sharing_.push_back(
          {first_works_[static_cast<size_t>(holder.index)], token, item.first_position + token});
  }
  std::ranges::sort(sharing_.begin() + first, sharing_.end(), {}, &Sharing::position);
  const auto end = static_cast<int>(sharing_.size());
  for (int work = 0; work < works_per_token(); ++work)
    for (int part = first_part; part < last_part; ++part)
      for (int token = first; token < end; token += tokens_per_item())
        shared_units_.push_back({part, work, token, std::min(tokens_per_item(), end - token)});
}

StepInputs::SharingToken StepInputs::token_of(const SharedUnit& unit, int index) const {
  const Sharing& sharing = sharing_[static_cast<size_t>(unit.first_token + index)];
  return {&works_[static_cast<size_t>(sharing.first_work + unit.work)], sharing.token};
}

float* StepInputs::partial_of(const SharedUnit& unit, const SharingToken& token) const {
  const kernels::AttentionItem& item = token.work->item;
  const int64_t row = (int64_t{unit.part} * item.tokens + token.token) * item.group;
  return item.partial + row * (head_dim_ + 2);
}

void StepInputs::split_attention(int threads) {
  parts_ = 1;
  if (threads == 1 || works_.size() >= static_cast<size_t>(kWorksPerThread * threads)) return;
  for (const AttentionWork& work : works_)
    parts_ = std::max(parts_, work.parts - work.item.parts_done);
}

void StepInputs::give_partials() {
  float* partial = reinterpret_cast<float*>(partials_.data());
  for (AttentionWork& work : works_) {
    const int64_t parts = is_split() ? work.parts : work.item.parts_done;
    work.item.partial = partial;
    partial += parts * work.item.tokens * work.item.group * (head_dim_ + 2);
  }
}

StepInputs::Unit StepInputs::unit(int64_t index) const {
  if (parts_ == 1)  // later tokens of a sequence see more
    return {&works_[works_.size() - 1 - static_cast<size_t>(index)], kernels::kAllParts};
  const AttentionWork& work = works_[static_cast<size_t>(index / parts_)];
  const int part = work.item.parts_done + static_cast<int>(index % parts_);
  return {part < work.parts ? &work : nullptr, part};
}

bool StepInputs::was_last_part(const AttentionWork& work) {
  std::atomic<int>& done = parts_done_[static_cast<size_t>(&work - works_.data())];
  if (done.fetch_add(1, std::memory_order_acq_rel) + 1 < work.parts - work.item.parts_done)
    return false;
  done.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace octavo
