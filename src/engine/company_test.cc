// Nothing changes an answer: randomly drawn sets of requests give the same tokens and
// log-probabilities whoever runs beside them, however they are scheduled and whatever is found in
// the prefix cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

#include "engine/engine_core.h"
#include "spec/early_exit.h"
#include "support/expect_same.h"
#include "support/stub_model.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

using testing::expect_equal;
using testing::hash_logits;
using testing::StubModel;

constexpr int kContext = 160;

// As hash_logits(), and some answers end early.
void ending_logits(const std::vector<TokenId>& history, std::span<float> row) {
  if (hash_logits(history, row) % 23 == 0) row[263] = 30;
}

struct Setting {
  const char* name;
  SchedulerOptions scheduler = {};
  int num_blocks = 400;
  int max_num_batched_tokens = 32;
  bool staggered = false;   // requests come while others run
  int num_drafts = 0;       // of a sequence in a step, at most
  bool trees = false;       // of drafts
  bool early_exit = false;  // the model itself drafts
};

std::vector<Setting> settings() {
  std::vector<Setting> all = {
      {"plain"},
      {"no prefix cache", {.enable_prefix_caching = false}},
      {"one at a time", {.max_num_seqs = 1}},
      {"one token a step", {.max_num_seqs = 1}, 400, 1},
      {"chunks of seven", {.max_num_seqs = 7}, 400, 7},
      {"everything at once", {.max_num_seqs = 64}, 400, 512},
      {"long prompts held back", {.long_prefill_token_threshold = 5}},
      {"priority", {.policy = SchedulingPolicy::priority}, 30, 32, true},
      {"shortest first", {.policy = SchedulingPolicy::shortest_prefill_first}, 30, 32, true},
      {"longest match", {.policy = SchedulingPolicy::longest_prefix_match}, 30, 32, true},
      {"tiny pool", {.max_num_seqs = 8}, 11},
      {"tiny pool, no prefix cache", {.max_num_seqs = 8, .enable_prefix_caching = false}, 11},
      {"tiny pool, lfu", {.prefix_cache_policy = EvictionPolicy::lfu}, 14, 32, true},
      {"time limit", {.max_inter_token_s = 1e-3}, 400, 32, true},
      {"static", {.max_num_seqs = 6, .mode = SchedulingMode::static_batch}, 200},
      {"static, tiny pool", {.max_num_seqs = 6, .mode = SchedulingMode::static_batch}, 12},
      {"static without padding",
       {.max_num_seqs = 6, .mode = SchedulingMode::static_batch, .pad_finished = false},
       200},
      {"contiguous", {.kv_layout = KvCacheLayout::contiguous}, 35},
      {"no kv", {.keep_kv = false}, 60},
      {"one draft", {}, 400, 32, false, 1},
      {"drafts", {}, 400, 32, true, 7},
      {"drafts, alone", {.max_num_seqs = 1}, 400, 9, false, 7},
      {"drafts, no prefix cache", {.enable_prefix_caching = false}, 400, 32, false, 5},
      {"drafts, tiny pool", {.max_num_seqs = 8}, 11, 32, false, 7},
      {"drafts, few tokens", {.max_num_seqs = 7}, 400, 7, true, 3},
      {"drafts, priority", {.policy = SchedulingPolicy::priority}, 30, 32, true, 4},
      {"drafts, static",
       {.max_num_seqs = 6, .mode = SchedulingMode::static_batch},
       12,
       32,
       false,
       6},
      {"drafts, contiguous", {.kv_layout = KvCacheLayout::contiguous}, 35, 32, true, 7},
      {"drafts, no kv", {.keep_kv = false}, 60, 32, false, 3},
      {"trees", {}, 400, 32, true, 7, true},
      {"trees, alone", {.max_num_seqs = 1}, 400, 9, false, 7, true},
      {"trees, no prefix cache", {.enable_prefix_caching = false}, 400, 32, false, 7, true},
      {"trees, tiny pool", {.max_num_seqs = 8}, 11, 32, false, 7, true},
      {"trees, priority", {.policy = SchedulingPolicy::priority}, 30, 32, true, 6, true},
      {"trees, static",
       {.max_num_seqs = 6, .mode = SchedulingMode::static_batch},
       30,
       32,
       false,
       6,
       true},
      {"trees, contiguous", {.kv_layout = KvCacheLayout::contiguous}, 35, 32, true, 7, true},
      {"early exit", {}, 400, 32, true, 7, false, true},
      {"early exit, alone", {.max_num_seqs = 1}, 400, 9, false, 7, false, true},
      {"early exit, no prefix cache",
       {.enable_prefix_caching = false},
       400,
       32,
       false,
       5,
       false,
       true},
      {"early exit, tiny pool", {.max_num_seqs = 8}, 11, 32, true, 7, false, true},
      {"early exit, tiny pool, no prefix cache",
       {.max_num_seqs = 8, .enable_prefix_caching = false},
       11,
       32,
       false,
       7,
       false,
       true},
      {"early exit, few tokens", {.max_num_seqs = 7}, 400, 7, true, 3, false, true},
      {"early exit, priority",
       {.policy = SchedulingPolicy::priority},
       30,
       32,
       true,
       4,
       false,
       true},
      {"early exit, static",
       {.max_num_seqs = 6, .mode = SchedulingMode::static_batch},
       12,
       32,
       false,
       6,
       false,
       true},
      {"early exit, contiguous",
       {.kv_layout = KvCacheLayout::contiguous},
       35,
       32,
       true,
       7,
       false,
       true},
      {"early exit, no kv", {.keep_kv = false}, 60, 32, false, 3, false, true},
  };
  return all;
}

std::vector<Request> draw_requests(uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<int>(random() % n); };
  std::vector<std::vector<TokenId>> prefixes(3);
  for (auto& prefix : prefixes)
    for (int i = below(70); i >= 0; --i) prefix.push_back(TokenId{'a' + below(26)});
  std::vector<Request> requests;
  for (int i = 0; i < 24; ++i) {
    Request r;
    r.prompt_token_ids = prefixes[static_cast<size_t>(below(3))];
    r.prompt_token_ids.resize(
        1 + static_cast<size_t>(below(static_cast<uint32_t>(r.prompt_token_ids.size()))));
    for (int own = below(40); own > 0; --own)
      r.prompt_token_ids.push_back(TokenId{'a' + below(26)});
    r.priority = below(3);
    if (below(4) == 0) r.cache_salt = "salt";
    r.params.temperature = below(2);
    r.params.seed = random();
    r.params.n = below(4) == 0 ? 1 + below(4) : 1;
    r.params.max_tokens = below(8) == 0 ? 0 : below(45);
    r.params.min_tokens = std::min(below(3), *r.params.max_tokens);
    if (below(3) == 0) r.params.logprobs = below(3);
    if (below(5) == 0) r.params.prompt_logprobs = 1;
    if (below(3) == 0) r.params.repetition_penalty = 1.3;
    if (below(4) == 0) r.params.stop = {"AB", "Q"};
    if (below(5) == 0) r.params.ignore_eos = true;
    if (below(4) == 0)
      r.pooling = {.type = static_cast<PoolingType>(below(3)),
                   .normalize = below(2) == 0,
                   .dimensions = below(3)};
    requests.push_back(std::move(r));
  }
  return requests;
}

// Knows the answers, and is wrong now and then: at the first draft, at the last, after the end of
// an answer, or nowhere.
class KnowingDrafter : public Drafter {
 public:
  explicit KnowingDrafter(std::vector<RequestOutput> answers, bool trees)
      : answers_(std::move(answers)), trees_(trees) {}

  std::string_view name() const override { return "knowing"; }
  void propose(std::span<DraftTask* const> tasks) override {
    for (DraftTask* task : tasks) guess(*task);
  }
  void finish(const FinishedSequence&) override {}

 private:
  void guess(DraftTask& task) {
    for (const RequestOutput& answer : answers_)
      if (answer.seed == task.seed) continue_from(answer, task);
    task.draft.resize(random_() % static_cast<uint32_t>(task.max_tokens + 1), TokenId{'z'});
    if (random_() % 2 == 0 && !task.draft.empty())
      task.draft[random_() % task.draft.size()] = TokenId{'A'};
    if (trees_) branch(task);
  }
  // What is right hangs on any of the branches, which begin anywhere.
  void branch(DraftTask& task) {
    const std::vector<TokenId> way = std::exchange(task.draft, {});
    int last = kRoot;  // of the right way
    for (size_t i = 0; i < way.size(); ++i) {
      while (random_() % 3 == 0) {
        const int beside = task.draft.empty() || random_() % 2
                               ? last
                               : static_cast<int>(random_() % task.draft.size());
        add_draft(task.draft, task.parents, TokenId{'B' + static_cast<int>(random_() % 9)}, beside);
      }
      last = add_draft(task.draft, task.parents, way[i], last);
    }
    task.draft.resize(std::min(task.draft.size(), static_cast<size_t>(task.max_tokens)));
    if (!task.parents.empty()) task.parents.resize(task.draft.size());
  }
  static void continue_from(const RequestOutput& answer, DraftTask& task) {
    const auto& tokens = answer.outputs.at(task.choice).token_ids;
    const size_t known = task.tokens.size() - static_cast<size_t>(task.prompt_tokens);
    task.draft.assign(tokens.begin() + static_cast<std::ptrdiff_t>(known), tokens.end());
  }

  std::vector<RequestOutput> answers_;
  bool trees_;
  std::mt19937 random_{7};
};

// An engine over a stub, driven step by step.
class Rig {
 public:
  explicit Rig(const Setting& setting, const std::vector<RequestOutput>& answers = {})
      : tokenizer_(std::move(*Tokenizer::create(testing::tiny_byte_spec()))),
        model_(static_cast<int>(tokenizer_.vocab_size()), kContext, setting.num_blocks,
               ending_logits, setting.max_num_batched_tokens, setting.num_drafts > 3 ? 8 : 4) {
    std::unique_ptr<Speculator> speculator;
    if (setting.num_drafts > 0) {
      std::vector<std::unique_ptr<Drafter>> drafters;
      if (setting.early_exit)
        drafters.push_back(
            *EarlyExitDrafter::create(model_, static_cast<int>(tokenizer_.vocab_size()),
                                      {.skipped_layers = {2}, .confidence_threshold = 0}));
      else
        drafters.push_back(std::make_unique<KnowingDrafter>(answers, setting.trees));
      speculator = std::make_unique<Speculator>(
          SpeculatorOptions{.num_speculative_tokens = setting.num_drafts, .adaptive = false},
          std::move(drafters));
    }
    SchedulerOptions scheduler = setting.scheduler;
    scheduler.max_num_batched_tokens = setting.max_num_batched_tokens;
    scheduler.max_num_seqs = std::min(scheduler.max_num_seqs, setting.max_num_batched_tokens);
    auto core = EngineCore::create(model_, tokenizer_,
                                   {.scheduler = scheduler,
                                    .speculator = std::move(speculator),
                                    .clock = [this] { return now_; }});
    EXPECT_TRUE(core) << core.error().message;
    core_ = std::move(*core);
  }

  void add(size_t index, Request request) {
    if (core_->scheduler().options().policy != SchedulingPolicy::priority) request.priority = 0;
    outputs_.resize(std::max(outputs_.size(), index + 1));
    ends_.resize(outputs_.size());
    streamed_.resize(outputs_.size());
    RequestEvents events;
    events.on_delta = [this, index](const ChoiceDelta& delta) {
      auto& texts = streamed_[index];
      texts.resize(std::max(texts.size(), static_cast<size_t>(delta.index) + 1));
      texts[static_cast<size_t>(delta.index)] += delta.text;
    };
    events.on_finish = [this, index](RequestOutput output) {
      outputs_[index] = std::move(output);
      ++ends_[index];
    };
    core_->add(RequestId{static_cast<int64_t>(index)}, request, events, now_);
  }
  bool step() {
    now_ += 0.001;
    const bool worked = core_->step();
    const auto sound = core_->scheduler().check();
    EXPECT_TRUE(sound) << sound.error().message;
    return worked;
  }
  void cancel(size_t index) { core_->cancel(RequestId{static_cast<int64_t>(index)}); }
  void run_to_end() {
    for (int steps = 0; step(); ++steps) ASSERT_LT(steps, 100'000) << "no end";
    EXPECT_EQ(core_->num_requests(), 0);
    EXPECT_EQ(core_->scheduler().pool().num_held(), 0);
  }

  std::vector<RequestOutput> outputs_;
  std::vector<int> ends_;
  std::vector<std::vector<std::string>> streamed_;
  EngineCore& core() { return *core_; }

 private:
  Tokenizer tokenizer_;
  StubModel model_;
  double now_ = 1;
  std::unique_ptr<EngineCore> core_;
};

RequestOutput alone(const Request& request) {
  Rig rig({"alone", {.enable_prefix_caching = false}});
  rig.add(0, request);
  rig.run_to_end();
  return rig.outputs_[0];
}

TEST(Company, ChangesNoAnswer) {
  int64_t preemptions = 0, hits = 0, drafts = 0, accepted = 0, exit_accepted = 0;
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    const std::vector<Request> requests = draw_requests(seed);
    std::vector<RequestOutput> expected;
    for (const Request& request : requests) expected.push_back(alone(request));
    for (const Setting& setting : settings()) {
      SCOPED_TRACE(setting.name + std::string(", seed ") + std::to_string(seed));
      Rig rig(setting, expected);
      for (size_t i = 0; i < requests.size(); ++i) {
        rig.add(i, requests[i]);
        for (size_t k = 0; setting.staggered && k < i % 3; ++k) rig.step();
      }
      rig.run_to_end();
      for (size_t i = 0; i < requests.size(); ++i) {
        SCOPED_TRACE(i);
        expect_equal(rig.outputs_[i], expected[i]);
        EXPECT_EQ(rig.ends_[i], 1);
        for (size_t k = 0; k < rig.streamed_[i].size(); ++k)
          EXPECT_EQ(rig.streamed_[i][k], expected[i].outputs[k].text);
      }
      preemptions += rig.core().scheduler().stats().num_preemptions;
      hits += rig.core().scheduler().prefix_tree().stats().prompts.hit_tokens;
      if (const Speculator* speculator = rig.core().speculator()) {
        drafts += speculator->stats().num_draft_tokens;
        accepted += speculator->stats().num_accepted_tokens;
        if (setting.early_exit) exit_accepted += speculator->stats().num_accepted_tokens;
      }
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(preemptions, 40);
  EXPECT_GT(drafts, 10000);
  EXPECT_GT(exit_accepted, 1000);
  EXPECT_GT(accepted, drafts / 10);
  EXPECT_LT(accepted, drafts * 9 / 10);
  EXPECT_GT(hits, 1000);
}

// Whoever is cancelled, at whatever moment: the others are unharmed, and each ends once.
TEST(Company, CancelsDisturbNobody) {
  for (uint32_t seed = 1; seed <= 6; ++seed)
    for (const Setting& setting : settings()) {
      SCOPED_TRACE(setting.name + std::string(", seed ") + std::to_string(seed));
      const std::vector<Request> requests = draw_requests(seed);
      std::vector<RequestOutput> expected;
      if (seed == 1 || setting.num_drafts > 0)
        for (const Request& request : requests) expected.push_back(alone(request));
      std::mt19937 random(seed);
      Rig rig(setting, expected);
      std::vector<bool> cancelled(requests.size());
      for (size_t i = 0; i < requests.size(); ++i) {
        rig.add(i, requests[i]);
        if (random() % 2 == 0) rig.step();
        const size_t victim = random() % (i + 1);
        if (random() % 3 == 0) {
          rig.cancel(victim);
          rig.cancel(victim);  // twice does no harm
          cancelled[victim] = true;
        }
      }
      rig.cancel(12345);
      rig.run_to_end();
      for (size_t i = 0; i < requests.size(); ++i) {
        EXPECT_EQ(rig.ends_[i], 1);
        if (!cancelled[i] && !expected.empty()) expect_equal(rig.outputs_[i], expected[i]);
      }
      if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace octavo
