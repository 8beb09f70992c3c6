// Runs one request at a time over the paged cache: chunked prefill, then a batch of its choices,
// one token each per step. Owns the block pool and the buffers of logits; borrows model and
// tokenizer.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "core/sampling_params.h"
#include "engine/outputs.h"
#include "engine/sequence.h"
#include "kv/block_pool.h"
#include "kv/block_table.h"
#include "model/model.h"
#include "sampling/sampler.h"
#include "tensor/aligned_buffer.h"
#include "text/tokenizer.h"

namespace octavo {

struct GenerateRequest {
  std::vector<TokenId> prompt_token_ids;
  SamplingParams params;
};

// New text of choice `index`; concatenated, the texts are CompletionOutput::text.
using TextSink = std::function<void(int index, std::string_view text)>;
// Prompt tokens that have been computed, for a progress bar.
using PrefillSink = std::function<void(int done, int total)>;

struct GenerateEvents {  // all may be empty
  TextSink on_text;
  PrefillSink on_prefill;
  std::stop_token cancel;  // ends all choices at the next step with FinishReason::abort
};

struct GeneratorOptions {
  bool kv_cache = true;  // false: every step recomputes the whole sequence, for comparison
  // Asked before and after each step, and with wait = true before an answer is given out, also
  // before numbers are blamed for one; an error ends the request. May be empty.
  std::function<Result<void>(bool wait)> check_weights = {};
  ThreadPool* pool = nullptr;  // draws for several choices at once; nullptr: one after the other
};

class Generator {
 public:
  // Errors: invalid_argument (the model's block size or number of blocks cannot hold).
  static Result<std::unique_ptr<Generator>> create(Model& model, const Tokenizer& tokenizer,
                                                   GeneratorOptions options);

  // Errors: invalid_argument (parameters, an empty prompt, ids that are no tokens),
  // context_overflow (prompt, or prompt plus max_tokens, longer than the context),
  // resource_exhausted (more blocks than there are), numeric_error, and what check_weights says.
  Result<RequestOutput> generate(const GenerateRequest& request, const GenerateEvents& events = {});

  // Sum of -log p(token i | tokens before) for i = 1.. of one window, and how many that are.
  struct WindowScore {
    double nll = 0;
    int predicted_tokens = 0;
  };
  Result<WindowScore> score(std::span<const TokenId> window);

 private:
  enum class Rows { all, last };
  struct Run {  // one request on its way
    const GenerateRequest& request;
    const GenerateEvents& events;
    RequestOutput output;
    std::vector<std::unique_ptr<Sequence>> choices;
  };
  // Gets the index of a token and the logits after it, cut to the tokenizer's size.
  using RowVisitor = std::function<Result<void>(int index, std::span<const float> row)>;

  Generator(Model& model, const Tokenizer& tokenizer, GeneratorOptions options,
            std::unique_ptr<BlockPool> pool, AlignedBuffer logits);

  Result<void> check_ids(std::span<const TokenId> ids) const;
  Result<int> tokens_to_generate(const GenerateRequest& request) const;
  Result<void> check_blocks(int64_t tokens, int choices) const;

  Result<void> run_request(Run& run, int max_tokens);
  Result<void> start_choices(Run& run, int max_tokens);
  Result<void> run_choices(Run& run);
  bool blocks_are_sound(const Run& run) const;
  Result<void> check_weights(bool wait = false) const;
  Result<void> with_sound_weights(Result<void> result) const;
  Result<void> decode_step(Run& run, std::span<Sequence* const> active);
  Result<void> recompute_step(Run& run, Sequence& choice);
  Result<void> draw_group(Run& run, std::span<Sequence* const> choices);
  Result<void> draw(Run& run, Sequence& choice, std::span<const float> row);
  Result<Sample> sample(Sampler& sampler, const Run& run, const Sequence& choice,
                        std::span<const float> row) const;
  float* logits();
  // Row i of them, cut to the tokenizer's size.
  std::span<const float> logits_row(size_t i) const;
  static void show(const Run& run, const Sequence& choice, std::string_view text);

  Result<void> reserve(BlockTable& table, int num_tokens);
  // Computes tokens from position 0 on, in chunks. False: cancelled on the way.
  Result<bool> prefill(std::span<const TokenId> tokens, BlockTable& table, Rows which,
                       const RowVisitor& visit, const GenerateEvents& events);
  Result<void> visit_rows(std::span<const int> rows, int offset, const RowVisitor& visit);

  Model& model_;
  const Tokenizer& tokenizer_;
  GeneratorOptions options_;
  std::unique_ptr<BlockPool> pool_;
  int num_tokens_;
  std::vector<Sampler> samplers_;  // one per thread
  std::vector<Result<Sample>> drawn_;
  AlignedBuffer logits_;  // float [max_logits_rows][logits_stride]
  struct {                // of the current step; kept for their memory
    std::vector<TokenId> tokens;
    std::vector<BatchSequence> sequences;
    std::vector<int> rows;  // whose logits are wanted
    void clear() {
      tokens.clear();
      sequences.clear();
      rows.clear();
    }
  } step_;
};

}  // namespace octavo
