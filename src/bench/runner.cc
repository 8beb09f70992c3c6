#include "bench/runner.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "bench/step_recorder.h"

namespace octavo {
namespace {

class Runner {
 public:
  Runner(const Workload& workload, const RunnerOptions& options, SchedulingPolicy policy)
      : workload_(workload),
        options_(options),
        uses_priorities_(policy == SchedulingPolicy::priority),
        block_map_(options.block_map_rows) {
    result_.name = options.name;
    result_.requests.resize(workload.size());
    tokens_.resize(workload.size());
    if (options.long_request) result_.long_request = static_cast<int>(*options.long_request);
  }

  void record_step(const StepReport& report) {
    StepSample sample = sample_step(*report.step, *report.scheduler);
    sample.step_s = report.plan_s + report.forward_s + report.draw_s + report.commit_s;
    sample.time_s = now() - sample.step_s;
    sample.scheduling_s = report.plan_s + report.commit_s;
    result_.steps.push_back(sample);
    block_map_.take(sample.time_s, *report.scheduler, result_.block_map);
  }

  RunResult run(Engine& engine) {
    engine.inspect([&](EngineCore& core) {
      result_.block_size = core.scheduler().pool().block_size();
      result_.num_blocks = core.scheduler().pool().num_blocks();
    });
    start_ = std::chrono::steady_clock::now();
    for (size_t i = 0; i < workload_.size(); ++i) {
      if (options_.long_request == i) continue;
      wait_for_turn(workload_[i]);
      submit(engine, i);
    }
    if (options_.long_request) interrupt_streams(engine, *options_.long_request);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_done_ == workload_.size(); });
    lock.unlock();
    engine.inspect([](EngineCore&) {});  // its last step is recorded
    return std::move(result_);
  }

 private:
  double now() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  void wait_for_turn(const WorkloadRequest& request) {
    std::this_thread::sleep_until(start_ + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::duration<double>(request.arrival_s)));
    if (options_.max_concurrency == 0) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_in_flight_ < options_.max_concurrency; });
  }

  void interrupt_streams(Engine& engine, size_t late) {
    wait_for_turn(workload_[late]);
    wait_until([&] { return num_writing_ + 1 == workload_.size(); });
    submit(engine, late);
    wait_until([&] { return stopping_; });
    for (const RequestId id : ids_) engine.cancel(id);
  }

  template <class Holds>
  void wait_until(Holds holds) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, holds);
  }

  // What was stopped on purpose is complete.
  std::string reason_of(const RequestOutput& output) {
    if (output.error) return "error";
    const FinishReason reason = output.outputs[0].finish_reason;
    const std::lock_guard lock(mutex_);
    return std::string(
        name(stopping_ && reason == FinishReason::abort ? FinishReason::stop : reason));
  }

  // Tells who waits for the streams, or for the long prompt.
  void count_tokens(size_t i, int tokens) {
    if (!options_.long_request) return;
    const std::lock_guard lock(mutex_);
    const int before = std::exchange(tokens_[i], tokens_[i] + tokens);
    if (options_.long_request == i)
      stopping_ = true;
    else if (before < kStreamTokens && tokens_[i] >= kStreamTokens)
      ++num_writing_;
    changed_.notify_all();
  }

  // One whose turn was late because of others arrives when it is handed over.
  void submit(Engine& engine, size_t i) {
    RequestRecord& record = result_.requests[i];
    const WorkloadRequest& given = workload_[i];
    const bool is_late = options_.max_concurrency > 0 || options_.long_request == i;
    record.arrival_s = is_late ? now() : given.arrival_s;
    record.prompt_tokens = static_cast<int>(given.prompt_token_ids.size());
    record.priority = given.priority;
    record.token_s.reserve(static_cast<size_t>(given.output_tokens));
    Request request{.prompt_token_ids = given.prompt_token_ids,
                    .priority = uses_priorities_ ? given.priority : 0,
                    .cache_salt = given.salt};
    request.params.temperature = 0;
    request.params.ignore_eos = true;
    request.params.max_tokens = given.output_tokens;
    RequestEvents events;
    events.on_delta = [this, i, &record](const ChoiceDelta& delta) {
      record.token_s.insert(record.token_s.end(), delta.token_ids.size(), now());
      count_tokens(i, static_cast<int>(delta.token_ids.size()));
    };
    events.on_finish = [this, i, &record](const RequestOutput& output) {
      count_tokens(i, kStreamTokens);
      if (options_.on_answer && !output.outputs.empty())
        options_.on_answer(i, output.outputs[0].token_ids);
      finish(record, output);
    };
    {
      const std::lock_guard lock(mutex_);
      ++num_in_flight_;
    }
    const auto id = engine.submit(std::move(request), std::move(events));
    if (id) return ids_.push_back(*id);
    count_tokens(i, kStreamTokens);
    finish(record,
           {.prompt_token_ids = {}, .prompt_logprobs = {}, .outputs = {}, .error = id.error()});
  }

  void finish(RequestRecord& record, const RequestOutput& output) {
    record.end_s = now();
    record.cached_tokens = output.num_cached_tokens;
    record.preemptions = output.metrics.num_preemptions;
    if (output.metrics.scheduled_ts > 0)
      record.scheduled_s = record.arrival_s + output.metrics.queued_s();
    record.finish_reason = reason_of(output);
    const std::lock_guard lock(mutex_);
    --num_in_flight_;
    ++num_done_;
    if (options_.on_progress)
      options_.on_progress(static_cast<int>(num_done_), static_cast<int>(workload_.size()));
    changed_.notify_all();
  }

  const Workload& workload_;
  const RunnerOptions& options_;
  bool uses_priorities_;  // other policies refuse them
  BlockMapRecorder block_map_;
  RunResult result_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<RequestId> ids_;  // of what was handed over
  std::vector<int> tokens_;     // of each request, where there is a long one
  size_t num_writing_ = 0;      // streams with kStreamTokens
  bool stopping_ = false;
  int num_in_flight_ = 0;
  size_t num_done_ = 0;
};

}  // namespace

Result<RunResult> run_workload(const LoadedEngine& loaded, const EngineOptions& engine_options,
                               const Workload& workload, const RunnerOptions& options) {
  Runner runner(workload, options, engine_options.scheduling_policy);
  EngineOptions recorded = engine_options;
  recorded.max_queue_len = std::max(recorded.max_queue_len, static_cast<int>(workload.size()));
  recorded.on_step = [&](const StepReport& report) {
    runner.record_step(report);
    if (engine_options.on_step) engine_options.on_step(report);
  };
  OCTAVO_TRY(const std::unique_ptr<Engine> engine, make_engine(loaded, recorded));
  return runner.run(*engine);
}

}  // namespace octavo
