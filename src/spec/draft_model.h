// A draft model: guesses of a second, smaller model with the same vocabulary. It has a KV cache of
// its own.
#pragma once

#include <list>
#include <memory>
#include <unordered_map>

#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "kv/prefix_tree.h"
#include "model/model.h"
#include "sampling/sampler.h"
#include "spec/drafter.h"
#include "spec/siblings.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

struct ModelDrafterOptions {
  RejectionSampleMethod method = RejectionSampleMethod::strict;
  int branching_factor = 1;    // guesses for one place, of greedy answers
  bool prefix_caching = true;  // what was computed of a text serves all with its key
};

class ModelDrafter final : public Drafter {
 public:
  // num_tokens: the tokenizer's, of which the model must have as many.
  static Result<std::unique_ptr<ModelDrafter>> create(Model& model, int num_tokens,
                                                      const ModelDrafterOptions& options = {});

  std::string_view name() const override { return "draft_model"; }
  void propose(std::span<DraftTask* const> tasks) override;
  void finish(const FinishedSequence& sequence) override;
  DraftBlocks blocks() const override;

 private:
  // What the draft model has computed of a sequence. Drafts that did not come true are found by
  // comparing, so that nobody has to say what became of them.
  struct State {
    std::vector<TokenId> tokens;  // with K and V in the first positions of the table
    BlockTable table;
    int64_t last_use = 0;
  };
  // A sequence on its way through one propose().
  struct Work {
    DraftTask* task;
    State* state;
    std::vector<TokenId> tokens;              // of the task, with the draft so far
    bool open = true;                         // gets another token
    bool has_room = false;                    // in its table, for all that is computed this time
    int count = 0;                            // tokens in the present forward
    std::vector<double> probabilities = {};   // of the draft's tokens, and
    std::vector<SiblingGuess> siblings = {};  // what stands beside them

    int num_computed() const { return static_cast<int>(state->tokens.size()); }
    size_t num_known() const { return task->tokens.size() - 1; }  // of which no logits are needed
  };
  struct Step;

  ModelDrafter(Model& model, int num_tokens, const ModelDrafterOptions& options,
               std::unique_ptr<BlockPool> pool, AlignedBuffer logits);

  State& state_of(const DraftTask& task);
  bool waits(const Work& work) const;
  bool make_room(Work& work);
  bool free_blocks(int count, const Work& taker);
  void adopt_prefix(Work& work);
  bool compute();
  Step plan();
  void commit(const Step& step);
  void draw(std::span<Work* const> rows);
  void note_siblings(Work& work, std::span<const float> row) const;

  Model& model_;
  int num_tokens_;
  ModelDrafterOptions options_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixTree> tree_;  // nullptr: no prefix caching
  AlignedBuffer logits_;
  Sampler sampler_;
  std::unordered_map<SeqId, State> states_;
  int64_t uses_ = 0;
  std::vector<Work> work_;
};

}  // namespace octavo
