#include "bench/speculative_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>

#include "bench/step_recorder.h"

namespace octavo {
namespace {

SpeculatorStats since(const SpeculatorStats& before, SpeculatorStats now) {
  now.num_drafts -= before.num_drafts;
  now.num_draft_tokens -= before.num_draft_tokens;
  now.num_accepted_tokens -= before.num_accepted_tokens;
  for (size_t i = 0; i < now.num_accepted_tokens_per_pos.size(); ++i)
    now.num_accepted_tokens_per_pos[i] -= before.num_accepted_tokens_per_pos[i];
  now.draft_s -= before.draft_s;
  return now;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

// Requests that are answered together.
struct SpeculativeEngine::Wave {
  std::mutex mutex;
  std::condition_variable done;
  size_t open = 0;
  std::optional<Error> error;

  void finish(const std::optional<Error>& why) {
    const std::lock_guard lock(mutex);
    if (why && !error) error = why;
    --open;
    done.notify_all();
  }
};

Result<std::unique_ptr<SpeculativeEngine>> SpeculativeEngine::create(
    const LoadedEngine& loaded, const EngineOptions& options,
    std::unique_ptr<Speculator> speculator) {
  std::unique_ptr<SpeculativeEngine> out(new SpeculativeEngine());
  EngineOptions own = options;
  own.enable_prefix_caching = false;
  own.on_step = [engine = out.get()](const StepReport& report) { engine->record_step(report); };
  OCTAVO_TRY(out->engine_, make_engine(loaded, own, std::move(speculator)));
  return out;
}

void SpeculativeEngine::record_step(const StepReport& report) {
  StepSample sample = sample_step(*report.step, *report.scheduler);
  sample.step_s =
      report.draft_s + report.plan_s + report.forward_s + report.draw_s + report.commit_s;
  sample.time_s = std::max(seconds_since(start_) - sample.step_s, 0.0);
  sample.scheduling_s = report.plan_s + report.commit_s;
  const StepWork& work = report.step->work;
  if (work.prefill_tokens == 0) {
    run_.tokens += gained_;
    run_.slots += work.num_seqs;
    run_.kv_tokens += work.kv_tokens;
    run_.seconds += sample.step_s;
    run_.draft_s += report.draft_s;
  }
  gained_ = 0;
  run_.record.steps.push_back(sample);
}

SpeculatorStats SpeculativeEngine::stats() {
  SpeculatorStats stats;
  engine_->inspect([&](EngineCore& core) {
    if (core.speculator()) stats = core.speculator()->stats();
  });
  return stats;
}

StepTimeModel SpeculativeEngine::step_model() {
  StepTimeModel model;
  engine_->inspect([&](EngineCore& core) { model = core.scheduler().step_model(); });
  return model;
}

Result<SpeculativeRun> SpeculativeEngine::run(const SpeculativeTask& task, int batch_size,
                                              int output_len) {
  const SpeculatorStats before = stats();
  const auto batch = static_cast<size_t>(batch_size);
  const size_t count = std::max(task.prompts.size(), batch);
  run_ = {};
  run_.record.requests.resize(count);
  run_.answers.resize(count);
  start_ = std::chrono::steady_clock::now();
  ++num_runs_;
  for (size_t first = 0; first < count; first += batch)
    OCTAVO_CHECK_OK(answer(task, first, std::min(first + batch, count), output_len));
  engine_->inspect([&](EngineCore& core) {  // its last step is recorded
    run_.record.block_size = core.scheduler().pool().block_size();
    run_.record.num_blocks = core.scheduler().pool().num_blocks();
  });
  run_.guesses = since(before, stats());
  return std::move(run_);
}

// Requests `first` to `last` of the run, all at once.
Result<void> SpeculativeEngine::answer(const SpeculativeTask& task, size_t first, size_t last,
                                       int output_len) {
  Wave wave;
  wave.open = last - first;
  for (size_t i = first; i < last; ++i) {
    const size_t repetition = i / task.prompts.size();
    Request request{.prompt_token_ids = task.prompts[i % task.prompts.size()],
                    .params = task.params,
                    .cache_salt = fmt::format("{} {}", num_runs_, repetition)};
    request.params.max_tokens = output_len;
    RequestRecord& record = run_.record.requests[i];
    record.arrival_s = seconds_since(start_);
    record.prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
    RequestEvents events;
    events.on_delta = [&](const ChoiceDelta& delta) {
      gained_ += static_cast<int64_t>(delta.token_ids.size());
      record.token_s.insert(record.token_s.end(), delta.token_ids.size(), seconds_since(start_));
    };
    events.on_finish = [&, i](RequestOutput output) {
      record.end_s = seconds_since(start_);
      record.scheduled_s = record.arrival_s + output.metrics.queued_s();
      record.finish_reason =
          output.error ? std::string("error") : std::string(name(output.outputs[0].finish_reason));
      if (!output.error) run_.answers[i] = std::move(output.outputs[0].token_ids);
      wave.finish(output.error);
    };
    if (auto id = engine_->submit(std::move(request), std::move(events)); !id)
      wave.finish(id.error());
  }
  std::unique_lock lock(wave.mutex);
  wave.done.wait(lock, [&] { return wave.open == 0; });
  if (wave.error) return tl::make_unexpected(*wave.error);
  return {};
}

}  // namespace octavo
