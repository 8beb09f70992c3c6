// A model without weights: what it says next is a function of the tokens it finds in its blocks, so
// that a token written to the wrong place, a missed copy or a stale table shows in the answer. With
// layers skipped it says the same but now and then, or something else altogether, and what it
// leaves in the blocks is wrong for the whole model.
#pragma once

#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "model/model.h"

namespace octavo::testing {

class StubModel : public Model {
 public:
  // Fills the row of logits (all zero before) after the tokens of the sequence so far.
  using Logits = std::function<void(const std::vector<TokenId>& history, std::span<float> row)>;

  StubModel(int vocab_size, int context_length, int num_blocks, Logits fill,
            int max_num_batched_tokens = 8, int max_logits_rows = 4)
      : fill_(std::move(fill)), slots_(static_cast<size_t>(num_blocks * 16), TokenId{-1}) {
    limits_ = {.vocab_size = vocab_size,
               .logits_stride = (vocab_size + 15) / 16 * 16 + 16,
               .context_length = context_length,
               .max_num_batched_tokens = max_num_batched_tokens,
               .max_logits_rows = max_logits_rows,
               .num_blocks = num_blocks,
               .block_size = 16,
               .hidden_size = 8,
               .num_layers = 4};
  }

  const ModelLimits& limits() const override { return limits_; }

  bool forward(const ForwardBatch& batch) override {
    ++forwards;
    if (on_forward) on_forward(batch);
    num_tokens += static_cast<int64_t>(batch.tokens.size());
    partial_ = !batch.skipped_layers.empty();
    histories_.clear();
    for (const BatchSequence& s : batch.sequences) {
      for (int i = 0; i < s.num_tokens; ++i)
        slot(s, s.first_position + i) =
            TokenId{raw(batch.tokens[static_cast<size_t>(s.first_row + i)]) + partial_ * kPartial};
      for (int i = 0; i < std::ssize(s.ancestors); ++i)
        slot(s, s.first_position - static_cast<int>(s.ancestors.size()) + i) =
            batch.tokens[static_cast<size_t>(s.ancestors[static_cast<size_t>(i)])];
      for (int i = 0; i < s.num_tokens; ++i) {
        histories_.emplace_back();
        for (int p = 0; p <= s.first_position + i; ++p) histories_.back().push_back(read(s, p));
      }
    }
    return true;
  }

  void logits(std::span<const int> rows, float* out) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::span<float> row(out + i * static_cast<size_t>(limits_.logits_stride),
                                 static_cast<size_t>(limits_.logits_stride));
      // Rows beyond the vocabulary are padding and must never be looked at.
      std::fill(row.begin(), row.end(), std::numeric_limits<float>::quiet_NaN());
      const auto meaningful = row.first(static_cast<size_t>(limits_.vocab_size));
      std::fill(meaningful.begin(), meaningful.end(), 0.0f);
      const auto& history = histories_[static_cast<size_t>(rows[i])];
      const bool is_other = partial_ && says_partially;
      (is_other ? says_partially : fill_)(history, meaningful);
      if (partial_ && !is_other && raw(history.back()) % 3 == 0) meaningful['A'] += 50;
    }
  }

  // Of all tokens up to the row's, as the logits are.
  void hidden(std::span<const int> rows, float* out) override {
    for (const int row : rows) {
      uint32_t h = 17;
      for (const TokenId t : histories_[static_cast<size_t>(row)])
        h = h * 31 + static_cast<uint32_t>(raw(t)) + 7;
      for (int i = 0; i < limits_.hidden_size; ++i) {
        h = h * 1664525 + 1013904223;
        *out++ = static_cast<float>(h >> 8) * 1e-7f - 0.8f;
      }
    }
  }

  void copy_block(BlockId from, BlockId to) override {
    ++copies;
    for (int i = 0; i < 16; ++i) slots_[at(to, i)] = slots_[at(from, i)];
  }

  Logits says_partially = {};  // with layers skipped; empty: as above
  std::function<void(const ForwardBatch&)> on_forward = {};
  int forwards = 0;
  int64_t num_tokens = 0;  // of all forwards
  int copies = 0;

 private:
  static constexpr int kPartial = 1 << 20;  // added to tokens that some layers have not seen

  static size_t at(BlockId block, int in_block) {
    return static_cast<size_t>(raw(block) * 16 + in_block);
  }
  TokenId& slot(const BatchSequence& s, int position) {
    return slots_[at(s.block_table[static_cast<size_t>(position / 16)], position % 16)];
  }

  TokenId read(const BatchSequence& s, int position) {
    const TokenId token = slot(s, position);
    return partial_ ? TokenId{raw(token) % kPartial} : token;
  }

  Logits fill_;
  ModelLimits limits_;
  bool partial_ = false;  // the last forward skipped layers
  std::vector<TokenId> slots_;
  std::vector<std::vector<TokenId>> histories_;
};

// Every token changes what comes after. Returns the hash of the history.
inline uint32_t hash_logits(const std::vector<TokenId>& history, std::span<float> row) {
  uint32_t h = 17;
  for (TokenId t : history) h = h * 31 + static_cast<uint32_t>(raw(t)) + 7;
  for (int i = 0; i < 40; ++i) {
    h = h * 1664525 + 1013904223;
    row['A' + (h >> 8) % 50] += 1.0f + static_cast<float>(h >> 28) * 0.2f;
  }
  return h;
}

}  // namespace octavo::testing
