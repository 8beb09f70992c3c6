#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "bench/comparison.h"
#include "bench/figures.h"
#include "bench/simulation.h"
#include "bench/synthetic_spec.h"
#include "bench/trace.h"
#include "cli/bench_output.h"
#include "cli/commands.h"
#include "cli/model_loading.h"
#include "cli/sampling_options.h"

namespace octavo::cli {
namespace {

struct NamedPolicy {
  std::string_view name;
  SchedulingPolicy policy;
};
constexpr std::array kAllPolicies = {
    NamedPolicy{"fcfs", SchedulingPolicy::fcfs},
    NamedPolicy{"priority", SchedulingPolicy::priority},
    NamedPolicy{"shortest-prefill-first", SchedulingPolicy::shortest_prefill_first},
    NamedPolicy{"longest-prefix-match", SchedulingPolicy::longest_prefix_match}};

// Five numbers in ms.
Result<StepCostFormula> parse_step_cost(const std::string& text) {
  std::array<double, 5> ms{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t i = 0; i < ms.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, ms[i]);
    const bool is_last = i + 1 == ms.size();
    const bool goes_on = is_last ? next == end : next != end && *next == ',';
    if (error != std::errc() || !goes_on || !std::isfinite(ms[i]) || ms[i] < 0 || ms[i] > 1e9)
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--step-cost is '{}'; it takes five numbers from 0 to 1e9, separated "
                              "by commas",
                              text));
    at = next + 1;
  }
  if (ms[0] == 0)
    return fail(
        ErrorCode::invalid_argument,
        "--step-cost: the first number, the time of a step for itself, must be more than 0");
  return StepCostFormula{ms[0] / 1e3, ms[1] / 1e3, ms[2] / 1e3, ms[3] / 1e3, ms[4] / 1e3};
}

Result<void> check_flags(const OptionValues& options) {
  OCTAVO_CHECK_OK(check_engine_flags(options));
  for (const auto& [one, other] :
       {std::pair("synthetic", "trace"), std::pair("step_cost", "calibrate")})
    if (options.is_given(one) == options.is_given(other))
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("simulate needs exactly one of {} and {}", flag_of(one), flag_of(other)));
  return {};
}

// Where the requests of each round come from: made-up ones from the next seed, recorded ones once.
struct Requests {
  SyntheticSpec spec = {};
  std::optional<Trace> trace = {};
  int rounds = 1;

  Result<Workload> of_round(int round) const {
    if (trace) return make_workload(*trace, 0, TokenRange());
    SyntheticSpec next = spec;
    next.seed += static_cast<uint64_t>(round);
    return make_workload(next, TokenRange());
  }
};

Result<Requests> read_requests(const OptionValues& options) {
  Requests requests;
  if (!options.is_given("synthetic")) {
    if (options.is_given("repeat"))
      return fail(ErrorCode::invalid_argument,
                  "--repeat needs --synthetic: recorded requests always take the same steps");
    OCTAVO_TRY(requests.trace, read_trace(options.text("trace")));
    return requests;
  }
  OCTAVO_TRY(requests.spec, parse_synthetic(options.text("synthetic")));
  const bool compares = options.flag("compare_policies");
  requests.rounds =
      static_cast<int>(options.find<int64_t>("repeat").value_or(compares ? kRounds : 1));
  return requests;
}

// Fills in what a model says: the cost of a step, how long sequences may be, the blocks.
Result<void> calibrate_with(const OptionValues& options, Terminal& terminal,
                            SimulationOptions& simulation) {
  EngineOptions engine = read_engine_options(options);
  engine.model = options.text("calibrate");
  OCTAVO_TRY(const LoadedEngine loaded, load_generator(engine, terminal));
  terminal.progress("Calibrating");
  OCTAVO_TRY(simulation.cost, calibrate(loaded, engine));
  terminal.clear_progress();
  simulation.scheduler.max_model_len = loaded.max_model_len;
  simulation.num_blocks = loaded.model->limits().num_blocks;
  return {};
}

std::string cost_text(const StepCostFormula& cost) {
  return fmt::format("{:.4g},{:.4g},{:.4g},{:.4g},{:.4g}", cost.step * 1e3,
                     cost.prefill_token * 1e3, cost.kv_token * 1e3, cost.sequence * 1e3,
                     cost.prefill_pair * 1e3);
}

Result<SimulationOptions> read_options(const OptionValues& options, Terminal& terminal) {
  SimulationOptions simulation;
  simulation.scheduler = scheduler_options(read_engine_options(options));
  simulation.block_size = options.integer("block_size");
  if (const auto most = options.find<int64_t>("max_concurrency"))
    simulation.max_concurrency = static_cast<int>(*most);
  if (options.is_given("calibrate")) {
    OCTAVO_CHECK_OK(calibrate_with(options, terminal, simulation));
  } else {
    OCTAVO_TRY(simulation.cost, parse_step_cost(options.text("step_cost")));
  }
  if (const auto blocks = options.find<int64_t>("num_blocks"))
    simulation.num_blocks = static_cast<int>(*blocks);
  return simulation;
}

Result<RunResult> run_policy(const Workload& workload, SimulationOptions run,
                             const NamedPolicy& policy) {
  run.name = std::string(policy.name);
  run.scheduler.policy = policy.policy;
  OCTAVO_TRY(RunResult result, simulate(workload, run));
  if (figures_of(result).completed > 0) return result;
  return fail(ErrorCode::invalid_argument,
              fmt::format("none of the {} requests could be served: they are longer than a "
                          "sequence may be, or than {} KV blocks of {} tokens hold; raise "
                          "--max-model-len or --num-blocks, or make them shorter",
                          workload.size(), run.num_blocks, run.block_size));
}

// A run for each policy, with the figures of all rounds. What is shown is of the first, so that
// policies are seen at the same requests.
Result<std::vector<RunResult>> run_rounds(const Requests& requests,
                                          const SimulationOptions& simulation,
                                          const std::vector<NamedPolicy>& policies) {
  std::vector<RunResult> runs;
  for (int round = 0; round < requests.rounds; ++round) {
    OCTAVO_TRY(const Workload workload, requests.of_round(round));
    for (size_t i = 0; i < policies.size(); ++i) {
      OCTAVO_TRY(RunResult run, run_policy(workload, simulation, policies[i]));
      FigureValues figures = figure_values(run);
      if (round == 0) runs.push_back(std::move(run));
      if (requests.rounds > 1) runs[i].rounds.push_back(std::move(figures));
    }
  }
  return runs;
}

std::vector<NamedPolicy> policies_of(const OptionValues& options, SchedulingPolicy given) {
  std::vector<NamedPolicy> policies;
  for (const NamedPolicy& each : kAllPolicies)
    if (options.flag("compare_policies") || each.policy == given) policies.push_back(each);
  return policies;
}

std::vector<std::string> notes_of(const Requests& requests, const std::string& step_cost) {
  std::vector<std::string> notes = {
      fmt::format("Simulated: a step takes {} ms (--step-cost). The same requests always take the "
                  "same time: what differs between rounds are the requests.",
                  step_cost)};
  if (requests.rounds > 1)
    notes.push_back(
        fmt::format("The {} rounds are of seeds that follow each other; plots and "
                    "distributions are of the first.",
                    requests.rounds));
  return notes;
}

}  // namespace

Result<void> run_simulate(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  OCTAVO_CHECK_OK(check_flags(options));
  OCTAVO_TRY(Requests requests, read_requests(options));
  OCTAVO_TRY(SimulationOptions simulation, read_options(options, terminal));
  simulation.block_map_rows = options.is_given("html") ? 200 : 0;
  BenchResult result{.title = "Simulated", .model = options.text("calibrate")};
  result.settings["step_cost"] = cost_text(simulation.cost);
  result.notes = notes_of(requests, result.settings["step_cost"]);
  if (options.flag("compare_policies")) {
    result.headline = {"median_ttft_ms", "median_urgent_ttft_ms", "output_throughput"};
    if (!requests.trace) draw_priorities(requests.spec, result);
  }
  OCTAVO_TRY(result.runs,
             run_rounds(requests, simulation, policies_of(options, simulation.scheduler.policy)));
  return show_result(std::move(result), invocation, terminal);
}

}  // namespace octavo::cli
