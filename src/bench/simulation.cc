#include "bench/simulation.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/runner.h"
#include "bench/step_recorder.h"
#include "kv/block_size.h"

namespace octavo {
namespace {

std::vector<SimRequest> to_requests(const Workload& workload) {
  std::vector<SimRequest> requests;
  requests.reserve(workload.size());
  for (const WorkloadRequest& given : workload)
    requests.push_back({.arrival_s = given.arrival_s,
                        .prompt = given.prompt_token_ids,
                        .output_tokens = given.output_tokens,
                        .priority = given.priority,
                        .salt = given.salt});
  return requests;
}

int longest_request(const Workload& workload) {
  int longest = 1;
  for (const WorkloadRequest& r : workload)
    longest = std::max(longest, static_cast<int>(r.prompt_token_ids.size()) + r.output_tokens);
  return longest;
}

std::string reason_of(SimEnd end) {
  if (end == SimEnd::length) return "length";
  return end == SimEnd::cancelled ? "abort" : "error";
}

RequestRecord to_record(const SimRecord& record, const WorkloadRequest& request) {
  return {.arrival_s = record.arrival_s,
          .scheduled_s = record.scheduled_s,
          .token_s = record.token_s,
          .end_s = record.end_s,
          .prompt_tokens = static_cast<int>(request.prompt_token_ids.size()),
          .cached_tokens = record.cached_tokens,
          .preemptions = record.preemptions,
          .priority = request.priority,
          .finish_reason = record.end ? reason_of(*record.end) : std::string("error")};
}

Result<SimOptions> simulator_options(const Workload& workload, const SimulationOptions& options) {
  SimOptions sim{.scheduler = options.scheduler,
                 .num_blocks = options.num_blocks,
                 .block_size = options.block_size,
                 .cost = options.cost,
                 .max_concurrency = options.max_concurrency};
  if (sim.scheduler.max_model_len == 0) sim.scheduler.max_model_len = longest_request(workload);
  if (sim.num_blocks > 0) return sim;
  const int64_t blocks = blocks_for(sim.scheduler.max_model_len, sim.block_size) *
                         std::min<int64_t>(sim.scheduler.max_num_seqs, std::ssize(workload));
  if (blocks > BlockPool::kMaxBlocks)
    return fail(ErrorCode::resource_exhausted,
                fmt::format("{} sequences of {} tokens need {} KV blocks, more than {}; say how "
                            "many blocks there are",
                            sim.scheduler.max_num_seqs, sim.scheduler.max_model_len, blocks,
                            BlockPool::kMaxBlocks));
  sim.num_blocks = static_cast<int>(std::max<int64_t>(blocks, 1));
  return sim;
}

}  // namespace

Result<RunResult> simulate(const Workload& workload, const SimulationOptions& options) {
  OCTAVO_TRY(SimOptions sim, simulator_options(workload, options));
  RunResult result;
  result.name = options.name;
  result.block_size = sim.block_size;
  result.num_blocks = sim.num_blocks;
  BlockMapRecorder block_map(options.block_map_rows);
  sim.on_step = [&](const SimStep& step) {
    StepSample sample = sample_step(*step.step, *step.scheduler);
    sample.time_s = step.start_s;
    sample.step_s = step.step_s;
    result.steps.push_back(sample);
    block_map.take(step.start_s, *step.scheduler, result.block_map);
  };
  const std::vector<SimRequest> requests = to_requests(workload);
  OCTAVO_TRY(const auto simulator, Simulator::create(std::move(sim), requests));
  if (!simulator->run())
    return fail(ErrorCode::unsupported,
                fmt::format("the scheduler stood still at {} s, which is a fault of this program",
                            simulator->now_s()));
  for (size_t i = 0; i < workload.size(); ++i)
    result.requests.push_back(to_record(simulator->records()[i], workload[i]));
  return result;
}

// Prompts and answers of many lengths that come one after the other, so that every kind of step is
// seen: prompts alone, answers alone in all numbers at once, and both.
Result<StepCostFormula> calibrate(const LoadedEngine& loaded, const EngineOptions& engine_options) {
  const int longest = std::min(loaded.max_model_len, 1024);
  SyntheticSpec spec;
  spec.num_requests = std::clamp(engine_options.max_num_seqs, 8, 32);
  OCTAVO_TRY(spec.prompt, Lengths::mixture({{1, std::max(1, longest / 32), longest / 2 + 1}}));
  OCTAVO_TRY(spec.output, Lengths::mixture({{1, 1, longest / 12 + 1}}));
  const int vocabulary = std::min(static_cast<int>(loaded.tokenizer->vocab_size()), 32'000);
  OCTAVO_TRY(const Workload workload, make_workload(spec, {0, vocabulary - 1}));
  EngineOptions options = engine_options;
  options.enable_prefix_caching = false;
  options.scheduling_policy = SchedulingPolicy::fcfs;
  options.scheduling_mode = SchedulingMode::continuous;
  options.max_inter_token_ms = 0;
  options.max_prefill_ratio = 0;
  StepTimeModel model;
  options.on_step = [&](const StepReport& report) {
    const double seconds = report.plan_s + report.forward_s + report.draw_s + report.commit_s;
    model.observe(report.step->work, seconds);
  };
  OCTAVO_CHECK_OK(run_workload(loaded, options, workload, {.name = "calibration"}));
  return StepCostFormula::of(model);
}

}  // namespace octavo
