#include "bench/simulation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "bench/figures.h"
#include "bench/step_recorder.h"
#include "bench/synthetic_spec.h"
#include "engine/engine_core.h"
#include "support/stub_model.h"
#include "support/tiny_tokenizer.h"

namespace octavo {
namespace {

constexpr StepCostFormula kCost{0.004, 3e-4, 2e-6, 8e-4, 1e-7};

// Says capitals, of which no prompt is made; every token changes what comes after.
void say_capitals(const std::vector<TokenId>& history, std::span<float> row) {
  uint32_t h = 17;
  for (const TokenId t : history) h = (h ^ static_cast<uint32_t>(raw(t))) * 16777619;
  row['A' + (h >> 8) % 26] = 1;
}

// A stub whose forward takes the time that the formula says, on a clock of its own.
class TimedStub : public testing::StubModel {
 public:
  TimedStub(int vocab_size, int context, int num_blocks, int max_num_batched_tokens, double& now)
      : StubModel(vocab_size, context, num_blocks, say_capitals, max_num_batched_tokens),
        now_(now) {}

  bool forward(const ForwardBatch& batch) override {
    StepWork work;
    for (const BatchSequence& s : batch.sequences) {
      const int last_row = s.first_row + s.num_tokens - 1;
      const bool completes = std::ranges::count(*batch.logits_rows, last_row) > 0;
      if (s.num_tokens == 1 && completes)
        work.add_decode(s.first_position);
      else
        work.add_prefill(s.first_position, s.num_tokens);
    }
    now_ += kCost.seconds(work);
    return StubModel::forward(batch);
  }

 private:
  double& now_;
};

// The real step loop, on requests that come while the fake clock runs.
class RealEngine {
 public:
  RealEngine(const SchedulerOptions& scheduler, int num_blocks)
      : tokenizer_(std::move(*Tokenizer::create(testing::tiny_byte_spec()))),
        model_(static_cast<int>(tokenizer_.vocab_size()), scheduler.max_model_len, num_blocks,
               scheduler.max_num_batched_tokens, now_) {
    EngineCoreOptions options{.scheduler = scheduler, .clock = [this] { return now_; }};
    options.on_step = [this](const StepReport& report) {
      StepSample sample = sample_step(*report.step, *report.scheduler);
      sample.time_s = report.start_s;
      sample.step_s = now_ - report.start_s;
      result.steps.push_back(sample);
    };
    core_ = std::move(*EngineCore::create(model_, tokenizer_, std::move(options)));
  }

  void serve(const Workload& workload) {
    result.requests.resize(workload.size());
    size_t next = 0;
    do {
      if (core_->num_requests() == 0 && next < workload.size())
        now_ = std::max(now_, workload[next].arrival_s);
      while (next < workload.size() && workload[next].arrival_s <= now_)
        add(next, workload[next]), ++next;
    } while (core_->step() || next < workload.size());
  }

  RunResult result;

 private:
  void add(size_t index, const WorkloadRequest& given) {
    RequestRecord& record = result.requests[index];
    record.arrival_s = given.arrival_s;
    record.prompt_tokens = static_cast<int>(given.prompt_token_ids.size());
    record.priority = given.priority;
    const bool uses_priorities =
        core_->scheduler().options().policy == SchedulingPolicy::priority;  // others refuse them
    Request request{.prompt_token_ids = given.prompt_token_ids,
                    .priority = uses_priorities ? given.priority : 0,
                    .cache_salt = given.salt};
    request.params.temperature = 0;
    request.params.ignore_eos = true;
    request.params.max_tokens = given.output_tokens;
    RequestEvents events;
    events.on_delta = [this, &record](const ChoiceDelta& delta) {
      record.token_s.insert(record.token_s.end(), delta.token_ids.size(), now_);
    };
    events.on_finish = [this, &record](const RequestOutput& output) {
      record.end_s = now_;
      record.cached_tokens = output.num_cached_tokens;
      record.preemptions = output.metrics.num_preemptions;
      if (output.metrics.scheduled_ts > 0) record.scheduled_s = output.metrics.scheduled_ts;
      record.finish_reason =
          output.error ? "error" : std::string(name(output.outputs[0].finish_reason));
    };
    core_->add(RequestId{static_cast<int64_t>(index)}, std::move(request), std::move(events),
               given.arrival_s);
  }

  double now_ = 0;
  Tokenizer tokenizer_;
  TimedStub model_;
  std::unique_ptr<EngineCore> core_;
};

Workload make(std::string_view spec) {
  Workload workload = *make_workload(*parse_synthetic(spec), {'a', 'z'});
  for (WorkloadRequest& request : workload) request.arrival_s += 1;  // 0 is "never" in metrics
  return workload;
}

struct Setting {
  const char* name;
  const char* workload;
  SchedulerOptions scheduler;
  int num_blocks = 200;
};

// Not only figures: every time of every request, and every step.
TEST(Simulation, DoesWhatTheEngineDoes) {
  const char* kShared =
      "requests=60,prompt=20-60,output=1-40,shared=70,groups=3,rate=30,priorities=3";
  const char* kApart = "requests=60,prompt=20-130,output=1-40,rate=40,priorities=3,burstiness=0.3";
  const Setting settings[] = {
      {"fcfs", kShared, {}},
      {"tight", kShared, {}, 15},
      {"tight, apart", kApart, {.enable_prefix_caching = false}, 15},
      {"lfu", kShared, {.prefix_cache_policy = EvictionPolicy::lfu}, 30},
      {"priority", kApart, {.policy = SchedulingPolicy::priority}, 40},
      {"shortest", kApart, {.policy = SchedulingPolicy::shortest_prefill_first}, 40},
      {"match", kShared, {.policy = SchedulingPolicy::longest_prefix_match}, 40},
      {"bounded", kApart, {.policy = SchedulingPolicy::priority, .max_waiting_s = 0.3}, 40},
      {"timed", kApart, {.max_inter_token_s = 0.02}},
      {"static", kApart, {.mode = SchedulingMode::static_batch}},
      {"static, skipping", kApart, {.mode = SchedulingMode::static_batch, .pad_finished = false}},
      {"contiguous", kApart, {.kv_layout = KvCacheLayout::contiguous}},
  };
  int64_t preemptions = 0, cached = 0;
  for (const Setting& setting : settings) {
    SCOPED_TRACE(setting.name);
    SchedulerOptions scheduler = setting.scheduler;
    scheduler.max_num_seqs = 12;
    scheduler.max_num_batched_tokens = 48;
    scheduler.max_model_len = 200;
    const Workload workload = make(setting.workload);
    RealEngine real(scheduler, setting.num_blocks);
    real.serve(workload);
    const auto simulated = simulate(workload, {.scheduler = scheduler,
                                               .num_blocks = setting.num_blocks,
                                               .block_size = 16,
                                               .cost = kCost});
    ASSERT_TRUE(simulated) << simulated.error().message;
    EXPECT_EQ(simulated->requests, real.result.requests);
    EXPECT_EQ(simulated->steps, real.result.steps);
    EXPECT_EQ(figures_of(*simulated).completed, 60);
    for (const RequestRecord& record : simulated->requests) {
      preemptions += record.preemptions;
      cached += record.cached_tokens;
    }
  }
  EXPECT_GT(preemptions, 4);
  EXPECT_GT(cached, 1000);
}

TEST(Simulation, SizesItselfByTheWorkload) {
  const Workload workload = make("requests=5,prompt=100,output=20");
  const auto result = simulate(workload, {.scheduler = {.max_num_seqs = 64}, .cost = kCost});
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->num_blocks, 5 * 4);  // 120 tokens in blocks of 32
  EXPECT_EQ(figures_of(*result).running_max, 5);
  EXPECT_EQ(figures_of(*result).preemptions, 0);
}

TEST(Simulation, WhatCannotBeServedIsInItsRecord) {
  const auto result = simulate(make("requests=3,prompt=100,output=20"),
                               {.scheduler = {.max_model_len = 512}, .num_blocks = 2});
  ASSERT_TRUE(result);
  EXPECT_EQ(figures_of(*result).failed, 3);
  EXPECT_EQ(simulate(make("requests=3,prompt=100,output=20"),
                     {.scheduler = {.max_num_seqs = 900, .max_num_batched_tokens = 3}})
                .error()
                .code,
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace octavo
