// What the engine knows of a model: tokens in, logits out, K and V kept in blocks. Tests put a stub
// behind it.
#pragma once

#include <span>

#include "core/ids.h"
#include "model/batch.h"

namespace octavo {

struct ModelLimits {
  int vocab_size = 0;     // meaningful entries of a row of logits
  int logits_stride = 0;  // floats from row to row, >= vocab_size
  int context_length = 0;
  int max_num_batched_tokens = 0;  // tokens of one forward
  int max_logits_rows = 0;         // rows of one call of logits()
  int num_blocks = 0;              // KV blocks
  int block_size = 0;              // tokens per KV block
  int max_lora_rank = 0;           // of adapters; 0: the model takes none
  int hidden_size = 0;             // floats of a row of hidden(); 0: there is no hidden()
  int num_layers = 0;              // that a forward can skip some of; 0: it cannot
  // Every token sees the whole sequence, so that a step has whole ones; there are no logits.
  bool is_encoder = false;
};

// One thread at a time.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelLimits& limits() const = 0;

  // Runs the batch and writes its K and V into the sequences' blocks.
  // REQUIRES: 1..max_num_batched_tokens tokens, all ids below vocab_size, tables that cover the
  // positions, a layer that is not skipped.
  // False: cancelled on the way; the K and V of the batch's positions are then of no use.
  virtual bool forward(const ForwardBatch& batch) = 0;

  // Logits after the given rows (ascending) of the last forward. out: [rows.size()][logits_stride].
  virtual void logits(std::span<const int> rows, float* out) = 0;

  // What the last layer gave for these rows of the last forward, after the final norm. out:
  // [rows.size()][hidden_size].
  virtual void hidden(std::span<const int> rows, float* out) {
    (void)rows;
    (void)out;
  }

  // Copies a block's content, all layers (copy-on-write).
  virtual void copy_block(BlockId from, BlockId to) = 0;
};

}  // namespace octavo
