// The step loop of continuous batching: plan, forward, draw, commit, tell. Owns all state of
// requests on their way; borrows model and tokenizer.
//
// One thread calls it (engine.h is the door for others), but for check(), which any may.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/thread_pool.h"
#include "engine/answer_rules.h"
#include "engine/heartbeat.h"
#include "engine/outputs.h"
#include "engine/pooler.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "model/model.h"
#include "sampling/sampler.h"
#include "sched/scheduler.h"
#include "spec/speculator.h"
#include "tensor/aligned_buffer.h"
#include "text/tokenizer.h"

namespace octavo {

// One step, for measurements; seconds of the engine's clock.
struct StepReport {
  double start_s = 0;
  double draft_s = 0;         // guessing what comes next
  double plan_s = 0;          // deciding, and taking blocks
  double forward_s = 0;       // the model, logits included
  double draw_s = 0;          // sampling
  double commit_s = 0;        // the rest: bookkeeping, text, events
  int num_tokens = 0;         // that answers gained
  int num_prompt_tokens = 0;  // of prompts that have been read to their end, found ones included
  const Step* step = nullptr;
  const Scheduler* scheduler = nullptr;
  const SpeculatorStats* speculation = nullptr;  // nullptr: nothing is guessed
};

class EngineCore;

struct EngineCoreOptions {
  SchedulerOptions scheduler;  // max_model_len: 0 means the model's context
  // Asked before and after each step, and with wait = true before an answer is given out, also
  // before numbers are blamed for one; an error ends the request. May be empty.
  std::function<Result<void>(bool wait)> check_weights = {};
  int max_logprobs = kMaxLogprobs;  // that a request may ask for; kNoLogprobsCap: any number
  std::shared_ptr<const LoraAdapter> adapter = {};   // of requests that name none; may be none
  std::unique_ptr<Speculator> speculator = nullptr;  // nullptr: no guesses
  ThreadPool* pool = nullptr;  // draws for several rows at once; nullptr: one after the other
  std::function<double()> clock = {};                   // seconds; empty: since the engine was made
  std::function<void(const StepReport&)> on_step = {};  // after each step; may be empty
  std::function<void(const EngineCore&)> on_idle = {};  // when nothing is left to do; may be empty
};

// Of one request on its way, for whoever watches.
struct LiveRequest {
  RequestId id{};
  int num_prompt_tokens = 0;
  int num_cached_tokens = 0;
  int num_generation_tokens = 0;  // of all choices
  int num_running = 0;            // of its choices
  int num_blocks = 0;             // that they hold; shared ones count for each
  int num_preemptions = 0;
  double age_s = 0;
};

class EngineCore {
 public:
  // Errors: invalid_argument (the model's block size or number of blocks cannot hold; those of
  // validate(SchedulerOptions)).
  static Result<std::unique_ptr<EngineCore>> create(Model& model, const Tokenizer& tokenizer,
                                                    EngineCoreOptions options);

  // Whether a request can be served at all. Errors: invalid_argument (parameters, an empty prompt,
  // ids that are no tokens), context_overflow (prompt, or prompt plus max_tokens, longer than
  // max_model_len or than what all KV blocks hold).
  Result<void> check(const Request& request) const;
  // The same, and takes its rules if it has none yet: what add() would do with less time.
  Result<void> prepare(Request& request) const;

  // What the request's cached prefixes are found under.
  PrefixKey key_of(const Request& request) const;

  // Those of the request: see take_answer_rules(). Any thread may call it, and it may take a while.
  Result<std::shared_ptr<const AnswerRules>> take_rules(SamplingParams& params) const {
    return take_answer_rules(params, tokenizer_, num_tokens_);
  }

  // events.on_finish comes in every case, here at once if check() refuses.
  void add(RequestId id, Request request, RequestEvents events, double arrival_s);
  // Ends all of its choices with FinishReason::abort. No-op for an unknown id.
  void cancel(RequestId id);
  // Ends everything that is on its way.
  void cancel_all();

  // One step; false if there is nothing to do. `stop` ends it on the way, as if it had not been. A
  // model that throws ends the requests of the step with an error, and no others.
  bool step(std::stop_token stop = {});

  double now() const { return options_.clock(); }
  std::vector<LiveRequest> live_requests() const;  // by id
  Heartbeat& heartbeat() { return heartbeat_; }
  const Heartbeat& heartbeat() const { return heartbeat_; }
  Scheduler& scheduler() { return *scheduler_; }
  const Scheduler& scheduler() const { return *scheduler_; }
  const Speculator* speculator() const { return options_.speculator.get(); }  // may be nullptr
  int num_requests() const { return static_cast<int>(requests_.size()); }

 private:
  struct Active {  // a request on its way
    RequestId id;
    Request request;
    RequestEvents events;
    RequestOutput output;
    int max_tokens = 0;            // of each choice
    std::optional<Pooler> pooler;  // of an embedding: there are no choices then
    std::vector<std::unique_ptr<Sequence>> choices;
    std::vector<SeqId> ids;  // of the choices; at first of the first alone
    int num_unfinished = 0;  // of the choices
    int64_t last_step = 0;   // that gave it a token
    bool started = false;    // its first tokens are being drawn, or have been
    bool ended = false;      // is in finished_

    const std::vector<TokenId>& prompt() const { return request.prompt_token_ids; }
  };
  struct Place {  // of a sequence
    Active* request;
    int choice;
  };
  // Something to take from rows of logits: the next token of a choice, with one more for each draft
  // that comes true, or the log-probability of a prompt token.
  struct Job {
    int row;  // index of logit_rows_
    Active* request;
    int choice;                            // kPromptToken: of the prompt
    int index;                             // of the prompt token
    int num_drafts = 0;                    // in as many rows after the first
    std::span<const int> parents = {};     // of them: see DraftTree
    std::span<const Distribution> q = {};  // what they were drawn from: see DraftTask
    int first_taken = 0;                   // of taken_
    int num_taken = 0;
    int last_draft = kRoot;  // that came true
  };
  static constexpr int kPromptToken = -1;
  struct PoolJob {
    Active* request;
    int position;
  };

  EngineCore(Model& model, const Tokenizer& tokenizer, EngineCoreOptions options,
             std::unique_ptr<Scheduler> scheduler, AlignedBuffer logits);

  Result<void> check_weights(bool wait) const;

  bool compute(const Step& step, StepReport& report, std::stop_token stop);
  void fail_step(const Step& step, std::string_view why);
  void guess();
  DraftTask guess_of(SeqId id, int max_tokens);
  void note_plan(const Step& step, double now_s);
  void lay_out(const Step& step);
  void lay_out(const StepChunk& chunk);
  void order_chunks(const Step& step);
  const LoraAdapter* adapter_of(const StepChunk& chunk) const;
  void add_jobs(const StepChunk& chunk, int first_row);
  void add_pool_jobs(const StepChunk& chunk, int first_row, Active& request);
  void keep_row(int row);
  void want_logits(int row);

  void draw_all();
  void pool_all();
  void finish_prompt(Active& request);
  size_t rows_at_once(size_t first) const;
  void take_all(std::span<Job> jobs, int first_row);
  void take(Job& job, int first_row, Sampler& sampler);
  Result<Sample> take_prompt_token(const Job& job, std::span<const float> row) const;
  Result<Sample> take_answer_token(const Job& job, std::span<const float> row,
                                   Sampler& sampler) const;
  DraftTree drafts_of(const Job& job) const;
  Guesses guesses_after(const Job& job, int draft, std::vector<TokenId>& buffer) const;
  TokenHistory history(const Job& job, int draft, std::vector<TokenId>& buffer) const;
  void deliver(const Job& job);
  void note_drafts(const Job& job, int num_accepted);
  void commit_token(Active& request, Sequence& choice, Sample sample);

  void end(Active& request, FinishReason reason);
  void end(Active& request, const Error& error);
  void tell(const Active& request, const Sequence& choice, std::string_view text,
            size_t num_tokens);
  void tell_prefill(const StepChunk& chunk);
  void tell_prompt_done(const Active& request);
  void finish_requests();
  float* logits() { return reinterpret_cast<float*>(logits_.data()); }

  Model& model_;
  const Tokenizer& tokenizer_;
  EngineCoreOptions options_;
  std::unique_ptr<Scheduler> scheduler_;
  int num_tokens_;  // that may be drawn
  std::unordered_map<RequestId, std::unique_ptr<Active>> requests_;
  std::unordered_map<SeqId, Place> places_;
  std::vector<Active*> finished_;  // in this step
  std::vector<Sampler> samplers_;  // one per thread
  AlignedBuffer logits_;           // float [max_logits_rows][logits_stride]
  // Of the current step; kept for their memory.
  std::vector<const StepChunk*> ordered_;  // those of one adapter side by side
  std::vector<TokenId> tokens_;
  std::vector<BatchSequence> sequences_;
  std::vector<int> ancestors_;  // of all sequences, end to end
  std::vector<DraftTask> guesses_;
  std::unordered_map<SeqId, const DraftTask*> drafted_;  // into guesses_
  std::vector<int> rows_;                                // whose logits or hidden states are wanted
  std::vector<int> logit_rows_;                          // of these
  std::vector<int> hidden_rows_;                         // of these, one per job of pool_jobs_
  std::vector<Job> jobs_;                                // in order of rows
  std::vector<PoolJob> pool_jobs_;
  std::vector<float> hidden_;  // [hidden_rows_][hidden_size]
  std::vector<Result<Sample>> taken_;
  std::vector<Active*> only_prompt_;  // their prompts are complete, which is all they asked for
  std::vector<StepOutcome> outcomes_;
  Heartbeat heartbeat_;
  double drawn_at_ = 0;
  int64_t step_ = 0;           // its number
  int num_prompt_tokens_ = 0;  // as StepReport has them
};

}  // namespace octavo
