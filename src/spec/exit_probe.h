// Compares a model with itself less some layers, place by place of a text, as drafting would: with
// the K and V of the whole model for all that comes before.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "spec/exit_search.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

class ExitProbe {
 public:
  // KV blocks that it needs of the model.
  static int num_blocks(int num_tokens, int num_places, int block_size);

  // Reads the text with the whole model, and what that says at `num_places` places, evenly spread.
  // Errors: invalid_argument (the text has too few tokens); resource_exhausted (the model has too
  // few blocks).
  static Result<std::unique_ptr<ExitProbe>> create(Model& model, std::vector<TokenId> tokens,
                                                   int num_places, int num_tokens);

  // At each place. REQUIRES: check_skipped_layers().
  std::vector<ExitSample> sample(std::span<const int> skipped_layers);

  // Of steps at the end of the text, in turns, so that whatever else the machine does hits all.
  ExitCosts measure_costs();
  // Of a draft: one token, with its logits.
  double draft_seconds(std::span<const int> skipped_layers);

 private:
  struct Place {
    int position;
    TokenId said;                 // by the whole model, after it
    std::vector<BlockId> blocks;  // its own last one, as it is written
  };

  ExitProbe(Model& model, std::vector<TokenId> tokens, int num_tokens, AlignedBuffer logits);

  void read_text(std::span<const int> positions);
  void take_places();
  double time_step(std::span<const int> skipped_layers, int num_tokens);
  template <class Body>
  void each_row(std::span<const int> rows, const Body& body);
  float* logits() { return reinterpret_cast<float*>(logits_.data()); }

  Model& model_;
  std::vector<TokenId> tokens_;
  int num_tokens_;  // of the vocabulary
  AlignedBuffer logits_;
  std::vector<BlockId> table_;  // of the text
  std::vector<Place> places_;
};

}  // namespace octavo
