// What changes from one step to the next while the program stays the same: tokens, where their K
// and V go, and the work of attention. Allocates only until it has seen the largest step.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "kernels/api.h"
#include "model/batch.h"
#include "model/model_config.h"
#include "model/shared_prefixes.h"
#include "model/step_buffers.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

// Of one row: its position in its sequence and the block that its K and V go to.
struct RowPlace {
  int position;
  int32_t block;
};

// A further place for the K and V of a row, in another sequence's blocks.
struct RowCopy {
  int row;
  RowPlace place;
};

// Consecutive rows of one adapter.
struct LoraRun {
  int first_row;
  int num_rows;
  const LoraAdapter* adapter;
};

// One KV head and few tokens of a sequence. The same for every layer: item.kv and item.window are
// left open.
struct AttentionWork {
  kernels::AttentionItem item;
  int row;    // of its first token
  int parts;  // of its context; of these the first item.parts_done are shared
};

class StepInputs {
 public:
  // share_prefixes: blocks that several sequences hold at their front are read once for all of
  // them. Errors: resource_exhausted.
  static Result<StepInputs> create(const ModelConfig& config, int block_size,
                                   int max_num_batched_tokens, int max_threads,
                                   bool share_prefixes);

  // Takes over a batch for a step on `threads` threads. The batch must outlive the step.
  void set(const ForwardBatch& batch, const StepBuffers& buffers, int threads);

  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const RowPlace> places() const { return places_; }
  std::span<const RowCopy> copies() const { return copies_; }  // by row
  // Rows that go through the end of the last layer, ascending.
  std::span<const int> kept_rows() const { return kept_rows_; }

  // Of the rows, or of the kept ones, those that have an adapter.
  std::span<const LoraRun> lora_runs(bool kept) const { return kept ? kept_runs_ : runs_; }

  // The attention of one layer begins with parts that tokens of several sequences share: the units
  // [0, num_shared_units), in any order, at once. All of them come before all of the others.
  struct SharedUnit {
    int part;
    int work;  // among those of a sequence
    int first_token, num_tokens;
  };
  int64_t num_shared_units() const { return std::ssize(shared_units_); }
  const SharedUnit& shared_unit(int64_t index) const {
    return shared_units_[static_cast<size_t>(index)];
  }
  // The work that a token of the unit belongs to, and its number there.
  struct SharingToken {
    const AttentionWork* work;
    int token;
  };
  SharingToken token_of(const SharedUnit& unit, int index) const;
  // Where the token's results of the unit's part go.
  float* partial_of(const SharedUnit& unit, const SharingToken& token) const;

  // What remains is the units [0, num_units), in any order, at once; those that cost
  // most come first. A unit is a work, or one part of its context: a few single tokens over long
  // contexts would not give every thread its share otherwise. The result is the same to the bit.
  struct Unit {
    const AttentionWork* work;  // nullptr: nothing to do
    int part;                   // of its context, or kernels::kAllParts
  };
  bool is_split() const { return parts_ > 1; }
  int64_t num_units() const { return static_cast<int64_t>(works_.size()) * parts_; }
  Unit unit(int64_t index) const;
  // After a part is done: whether it was the last of its work, so that the caller may join them.
  bool was_last_part(const AttentionWork& work);

 private:
  void place_rows(const ForwardBatch& batch);
  void place_ancestors(const BatchSequence& sequence);
  RowPlace place_of(const BatchSequence& sequence, int position) const;
  void find_lora_runs(const ForwardBatch& batch);
  void plan_attention(const ForwardBatch& batch, const StepBuffers& buffers);
  int heads_per_item() const {
    return std::min(num_heads_ / num_kv_heads_, kernels::kMaxAttentionRows);
  }
  int tokens_per_item() const { return kernels::kMaxAttentionRows / heads_per_item(); }
  int works_per_token() const {  // of all heads
    const int group = num_heads_ / num_kv_heads_;
    return num_kv_heads_ * ((group + heads_per_item() - 1) / heads_per_item());
  }
  std::span<AttentionWork> works_of(const PrefixHolder& holder) {
    const int first = first_works_[static_cast<size_t>(holder.index)];
    return std::span(works_).subspan(static_cast<size_t>(first),
                                     static_cast<size_t>(works_per_token()));
  }
  void plan_sequence(const BatchSequence& sequence, const int32_t* table,
                     const StepBuffers& buffers);
  void share_attention(const ForwardBatch& batch);
  void share_parts(const SharedParts& shared);
  void plan_shared_units(std::span<const PrefixHolder> holders, int first_part, int last_part);
  void split_attention(int threads);
  void give_partials();
  int64_t partial_floats(int64_t tokens) const {  // of one part, all heads
    return tokens * num_heads_ * (head_dim_ + 2);
  }

  bool is_encoder_ = false;
  int num_heads_ = 0, num_kv_heads_ = 0, head_dim_ = 0;
  float score_scale_ = 0;
  float score_cap_ = 0;
  int block_size_ = 0;
  size_t blocks_per_context_ = 0;
  std::span<const TokenId> tokens_;
  std::vector<RowPlace> places_;
  std::vector<RowCopy> copies_;
  std::vector<int> kept_rows_;
  std::vector<LoraRun> runs_, kept_runs_;
  std::vector<int32_t> tables_;  // block tables of all sequences, end to end
  std::vector<AttentionWork> works_;
  std::vector<int> first_works_;   // of the sequences
  int64_t max_shared_floats_ = 0;  // of partials_, for parts that are shared; 0: none are
  int64_t shared_floats_left_ = 0;
  std::vector<PrefixHolder> holders_;
  std::vector<SharedParts> shared_parts_;
  struct Sharing {
    int first_work;  // of its sequence
    int token;
    int position;
  };
  std::vector<Sharing> sharing_;  // tokens of shared units
  std::vector<SharedUnit> shared_units_;
  int parts_ = 1;                                   // units of each work; some may be empty
  AlignedBuffer partials_;                          // results of parts
  std::unique_ptr<std::atomic<int>[]> parts_done_;  // of each work; zero between layers
};

}  // namespace octavo
