// What changes from one step to the next while the program stays the same: tokens, where their K
// and V go, and the work of attention. Allocates only until it has seen the largest step.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "core/ids.h"
#include "kernels/api.h"
#include "model/batch.h"
#include "model/model_config.h"
#include "model/step_buffers.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

// Of one row: its position in its sequence and the block that its K and V go to.
struct RowPlace {
  int position;
  int32_t block;
};

// One KV head and few tokens of a sequence. The same for every layer: item.kv and item.window are
// left open.
struct AttentionWork {
  kernels::AttentionItem item;
  int row;    // of its first token
  int parts;  // of its context
};

class StepInputs {
 public:
  // Errors: resource_exhausted.
  static Result<StepInputs> create(const ModelConfig& config, int block_size,
                                   int max_num_batched_tokens, int max_threads);

  // Takes over a batch for a step on `threads` threads. The batch must outlive the step.
  void set(const ForwardBatch& batch, const StepBuffers& buffers, int threads);

  std::span<const TokenId> tokens() const { return tokens_; }
  std::span<const RowPlace> places() const { return places_; }
  // Rows that go through the end of the last layer, ascending.
  std::span<const int> kept_rows() const { return kept_rows_; }

  // The attention of one layer is the units [0, num_units), in any order, at once; those that cost
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
  void plan_attention(const ForwardBatch& batch, const StepBuffers& buffers);
  void plan_sequence(const BatchSequence& sequence, const int32_t* table,
                     const StepBuffers& buffers);
  void split_attention(int threads);

  int num_heads_ = 0, num_kv_heads_ = 0, head_dim_ = 0;
  int block_size_ = 0;
  size_t blocks_per_context_ = 0;
  std::span<const TokenId> tokens_;
  std::vector<RowPlace> places_;
  std::vector<int> kept_rows_;
  std::vector<int32_t> tables_;  // block tables of all sequences, end to end
  std::vector<AttentionWork> works_;
  int parts_ = 1;                                   // units of each work; some may be empty
  AlignedBuffer partials_;                          // results of parts
  std::unique_ptr<std::atomic<int>[]> parts_done_;  // of each work; zero between layers
};

}  // namespace octavo
