// The tokens of one step: of several sequences, laid flat, end to end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>

#include "core/ids.h"

namespace octavo {

class LoraAdapter;

// Consecutive tokens of one sequence in the batch. Its blocks hold, or get from this step, the K
// and V of every position up to the last token here.
struct BatchSequence {
  int first_row = 0;  // of its tokens in ForwardBatch::tokens
  int num_tokens = 0;
  int first_position = 0;                // in the sequence
  std::span<const BlockId> block_table;  // covers positions [0, first_position + num_tokens)
  // Its tokens' own weights, beside those of all; nullptr: none. Sequences of one adapter that lie
  // side by side are computed together.
  const LoraAdapter* adapter = nullptr;
  // Rows of sequences before it in the batch. Their K and V go to its blocks too, the last ones to
  // the position before its first: it goes on where another one left a common way.
  std::span<const int> ancestors = {};
};

struct ForwardBatch {
  std::span<const TokenId> tokens;
  std::span<const BatchSequence> sequences;  // in order of first_row, covering all tokens
  // The only rows that logits() and hidden() may be asked for after this step, ascending; nothing:
  // all. The end of the last layer is computed for these alone.
  std::optional<std::span<const int>> logits_rows{};
  std::stop_token cancel{};  // looked at between layers
  // Layers that the tokens pass by, as if those changed nothing; ascending. Their K and V are not
  // written. A step that computes the same positions with all layers makes good what this one left.
  std::span<const int> skipped_layers{};

  int num_logits_rows() const {
    return static_cast<int>(logits_rows ? logits_rows->size() : tokens.size());
  }
};

}  // namespace octavo
