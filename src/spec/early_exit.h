// Self-speculative decoding (LayerSkip, early exit): guesses of the model itself with some of its
// layers skipped. It reads the K and V that the whole model has computed, and writes its own behind
// them, where verification will put the right ones.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "model/model.h"
#include "sampling/sampler.h"
#include "spec/drafter.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

struct EarlyExitOptions {
  std::vector<int> skipped_layers = {};  // ascending
  double confidence_threshold = 0.4;     // of the most probable token, for the draft to go on
};

// Errors: invalid_argument (no such layer, one twice, none left); unsupported (the model cannot
// skip layers).
Result<void> check_skipped_layers(std::span<const int> layers, int num_layers);

class EarlyExitDrafter final : public Drafter {
 public:
  // The model is that of the engine, between two of its forwards.
  static Result<std::unique_ptr<EarlyExitDrafter>> create(
      Model& model, int num_tokens, EarlyExitOptions options,
      RejectionSampleMethod method = RejectionSampleMethod::strict);

  std::string_view name() const override { return "early_exit"; }
  void propose(std::span<DraftTask* const> tasks) override;
  void finish(const FinishedSequence&) override {}

 private:
  // A sequence on its way through one propose().
  struct Work {
    DraftTask* task;
    std::span<const BlockId> blocks;
    std::vector<TokenId> tokens;  // of the task, with the draft so far
    bool open = true;             // gets another token
  };

  EarlyExitDrafter(Model& model, int num_tokens, EarlyExitOptions options,
                   RejectionSampleMethod method, AlignedBuffer logits);

  bool compute(size_t first);
  void draw(std::span<const int> rows);
  bool draw(Work& work, std::span<const float> logits);

  Model& model_;
  int num_tokens_;
  EarlyExitOptions options_;
  RejectionSampleMethod method_;
  AlignedBuffer logits_;
  Sampler sampler_;
  // Of the current propose(); kept for their memory.
  std::vector<Work> work_;
  std::vector<TokenId> tokens_;
  std::vector<BatchSequence> sequences_;
  std::vector<Work*> computed_;  // by row
  std::vector<int> rows_;
};

}  // namespace octavo
