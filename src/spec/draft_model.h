// Guesses of a second, smaller model with the same vocabulary. It has a KV cache of its own.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "model/model.h"
#include "sampling/sampler.h"
#include "spec/drafter.h"
#include "spec/siblings.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

class ModelDrafter final : public Drafter {
 public:
  // num_tokens: the tokenizer's, of which the model must have as many. branching_factor: guesses
  // for one place, of greedy answers.
  static Result<std::unique_ptr<ModelDrafter>> create(
      Model& model, int num_tokens, RejectionSampleMethod method = RejectionSampleMethod::strict,
      int branching_factor = 1);

  std::string_view name() const override { return "draft_model"; }
  void propose(std::span<DraftTask* const> tasks) override;
  void finish(const FinishedSequence& sequence) override { states_.erase(sequence.id); }

 private:
  // What the draft model has computed of a sequence. Drafts that did not come true are found by
  // comparing, so that nobody has to say what became of them.
  struct State {
    std::vector<TokenId> tokens;  // with K and V in the blocks of the table
    BlockTable table;
    int64_t last_use = 0;
  };
  // A sequence on its way through one propose().
  struct Work {
    DraftTask* task;
    State* state;
    std::vector<TokenId> tokens;              // of the task, with the draft so far
    bool open = true;                         // gets another token
    std::vector<double> probabilities = {};   // of the draft's tokens, and
    std::vector<SiblingGuess> siblings = {};  // what stands beside them
  };

  ModelDrafter(Model& model, int num_tokens, RejectionSampleMethod method, int branching_factor,
               std::unique_ptr<BlockPool> pool, AlignedBuffer logits);

  State& state_of(const DraftTask& task);
  bool reserve(Work& work, int num_tokens);
  bool compute();
  void draw(std::span<Work* const> rows);
  void note_siblings(Work& work, std::span<const float> row) const;

  Model& model_;
  int num_tokens_;
  RejectionSampleMethod method_;
  int branching_factor_;
  std::unique_ptr<BlockPool> pool_;
  AlignedBuffer logits_;
  Sampler sampler_;
  std::unordered_map<SeqId, State> states_;
  int64_t uses_ = 0;
  std::vector<Work> work_;
};

}  // namespace octavo
