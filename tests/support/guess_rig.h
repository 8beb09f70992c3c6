// Engines over a stub, with and without something that guesses for them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "engine/engine_core.h"
#include "spec/draft_model.h"
#include "support/stub_model.h"

namespace octavo::testing {

class GuessRig {
 public:
  using MakeDrafters = std::function<std::vector<std::unique_ptr<Drafter>>(StubModel& model)>;

  // options.clock is the engine's too. make: nullptr for an engine without drafters.
  GuessRig(TokenizerSpec spec, StubModel::Logits fill, const SpeculatorOptions& options,
           const MakeDrafters& make)
      : tokenizer_(std::move(*Tokenizer::create(std::move(spec)))),
        model_(static_cast<int>(tokenizer_.vocab_size()), kContext, 1024, std::move(fill), 256,
               256) {
    auto speculator = make ? std::make_unique<Speculator>(options, make(model_)) : nullptr;
    core_ = std::move(
        *EngineCore::create(model_, tokenizer_,
                            {.scheduler = {.max_num_seqs = 32, .max_num_batched_tokens = 256},
                             .speculator = std::move(speculator),
                             .clock = options.clock}));
  }
  // Always as many guesses as there are. drafter: nullptr for an engine without.
  GuessRig(TokenizerSpec spec, StubModel::Logits fill, std::unique_ptr<Drafter> drafter = nullptr,
           int num_drafts = 0)
      : GuessRig(std::move(spec), std::move(fill),
                 {.num_speculative_tokens = num_drafts, .adaptive = false}, only(drafter)) {}

  std::vector<RequestOutput> run(const std::vector<Request>& requests) {
    std::vector<RequestOutput> outputs(requests.size());
    streamed.assign(requests.size(), {});
    for (size_t i = 0; i < requests.size(); ++i) {
      RequestEvents events;
      events.on_delta = [this, i](const ChoiceDelta& delta) { streamed[i] += delta.text; };
      events.on_finish = [&outputs, i](RequestOutput output) { outputs[i] = std::move(output); };
      core_->add(RequestId{next_id_++}, requests[i], std::move(events), 0);
    }
    for (int steps = 0; core_->step(); ++steps)
      if (steps > 10'000'000) {
        ADD_FAILURE() << "no end";
        break;
      }
    EXPECT_TRUE(core_->scheduler().check());
    EXPECT_EQ(core_->scheduler().pool().num_held(), 0);
    return outputs;
  }
  RequestOutput run(const Request& request) { return std::move(run(std::vector{request})[0]); }

  const SpeculatorStats& stats() const { return core_->speculator()->stats(); }
  int forwards() const { return model_.forwards; }

  std::vector<std::string> streamed;  // of the last run, choices as they came

 private:
  static constexpr int kContext = 256;

  static MakeDrafters only(std::unique_ptr<Drafter>& drafter) {
    if (!drafter) return nullptr;
    return [&drafter](StubModel&) {
      std::vector<std::unique_ptr<Drafter>> drafters;
      drafters.push_back(std::move(drafter));
      return drafters;
    };
  }

  Tokenizer tokenizer_;
  StubModel model_;
  std::unique_ptr<EngineCore> core_;
  int64_t next_id_ = 0;
};

// A draft model that is a stub too.
class StubDrafter : public Drafter {
 public:
  StubDrafter(int num_tokens, StubModel::Logits fill, RejectionSampleMethod method)
      : model_(num_tokens, 256, 1024, std::move(fill), 256, 32),
        drafter_(*ModelDrafter::create(model_, num_tokens, {.method = method})) {}

  std::string_view name() const override { return drafter_->name(); }
  void propose(std::span<DraftTask* const> tasks) override { drafter_->propose(tasks); }
  void finish(const FinishedSequence& sequence) override { drafter_->finish(sequence); }
  StubModel& model() { return model_; }

 private:
  StubModel model_;
  std::unique_ptr<ModelDrafter> drafter_;
};

// Knows what comes: of the sequence with a seed and choice, these are the tokens. At place
// `wrong_at` of each guess it errs.
class OracleDrafter : public Drafter {
 public:
  explicit OracleDrafter(std::vector<RequestOutput> answers, int wrong_at = -1)
      : answers_(std::move(answers)), wrong_at_(wrong_at) {}

  std::string_view name() const override { return "oracle"; }
  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks)
      for (const RequestOutput& answer : answers_)
        if (answer.seed == task->seed) guess(*task, answer.outputs.at(task->choice).token_ids);
  }
  void finish(const FinishedSequence&) override {}

 private:
  void guess(DraftTask& task, const std::vector<TokenId>& answer) const {
    const size_t known = task.tokens.size() - static_cast<size_t>(task.prompt_tokens);
    for (size_t i = known; i < answer.size(); ++i) {
      if (std::cmp_equal(task.draft.size(), task.max_tokens)) break;
      const bool wrong = std::cmp_equal(i - known, wrong_at_);
      task.draft.push_back(wrong ? TokenId{raw(answer[i]) ^ 1} : answer[i]);
    }
  }

  std::vector<RequestOutput> answers_;
  int wrong_at_;
};

}  // namespace octavo::testing
