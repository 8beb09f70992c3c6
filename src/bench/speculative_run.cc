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

// Those that are being answered.
struct SpeculativeEngine::Open {
  std::mutex mutex;
  std::condition_variable done;
  size_t count = 0;
  std::optional<Error> error;

  void start(size_t most) {
    std::unique_lock lock(mutex);
    done.wait(lock, [&] { return count < most; });
    ++count;
  }
  void finish(const std::optional<Error>& why) {
    const std::lock_guard lock(mutex);
    if (why && !error) error = why;
    --count;
    done.notify_all();
  }
};

Result<std::unique_ptr<SpeculativeEngine>> SpeculativeEngine::create(
    const LoadedEngine& loaded, const EngineOptions& options,
    std::unique_ptr<Speculator> speculator) {
  std::unique_ptr<SpeculativeEngine> out(new SpeculativeEngine());
  EngineOptions own = options;
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
  if (work.prefill_tokens == 0 && work.num_seqs == batch_size_) {
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
  batch_size_ = batch_size;
  // Answers that are guessed well end early: others take their places, so that a batch stays one.
  const size_t count =
      std::max(task.prompts.size(), static_cast<size_t>(batch_size > 1 ? 2 * batch_size : 1));
  run_ = {};
  run_.record.requests.resize(count);
  run_.answers.resize(count);
  start_ = std::chrono::steady_clock::now();
  ++num_runs_;
  for (size_t i = 0; i < count; ++i) OCTAVO_CHECK_OK(read_prompt(task, i));
  // On the engine's thread: a prompt has ended before the step that read it is recorded.
  engine_->inspect([&](EngineCore&) {
    run_.record.steps.clear();
    gained_ = 0;
  });
  Open open;
  for (size_t i = 0; i < count; ++i) start(task, i, output_len, open);
  open.start(1);  // all others have ended
  if (open.error) return tl::make_unexpected(*open.error);
  engine_->inspect([&](EngineCore& core) {  // its last step is recorded
    run_.record.block_size = core.scheduler().pool().block_size();
    run_.record.num_blocks = core.scheduler().pool().num_blocks();
  });
  run_.guesses = since(before, stats());
  return std::move(run_);
}

Request SpeculativeEngine::request(const SpeculativeTask& task, size_t i, int output_len) const {
  const size_t repetition = i / task.prompts.size();
  Request request{.prompt_token_ids = task.prompts[i % task.prompts.size()],
                  .params = task.params,
                  .cache_salt = fmt::format("{} {}", num_runs_, repetition)};
  request.params.max_tokens = output_len;
  return request;
}

// So that it is in the prefix cache, and does not disturb the steps that are measured.
Result<void> SpeculativeEngine::read_prompt(const SpeculativeTask& task, size_t i) {
  Request only_prompt = request(task, i, 0);
  only_prompt.num_speculative_tokens = 0;
  OCTAVO_TRY(const RequestOutput output, engine_->run(std::move(only_prompt)));
  if (output.error) return tl::make_unexpected(*output.error);
  return {};
}

void SpeculativeEngine::start(const SpeculativeTask& task, size_t i, int output_len, Open& open) {
  open.start(static_cast<size_t>(batch_size_));
  RequestRecord& record = run_.record.requests[i];
  record.arrival_s = seconds_since(start_);
  record.prompt_tokens = static_cast<int>(task.prompts[i % task.prompts.size()].size());
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
    open.finish(output.error);
  };
  if (auto id = engine_->submit(request(task, i, output_len), std::move(events)); !id)
    open.finish(id.error());
}

}  // namespace octavo
