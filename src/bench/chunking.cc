#include "bench/chunking.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "bench/comparison_plan.h"
#include "bench/comparison_rounds.h"
#include "bench/figures.h"
#include "bench/median.h"
#include "bench/runner.h"

namespace octavo {
namespace {

constexpr int kStreams = 8;
constexpr int kAloneRuns = 2;

// What is tried: budgets of tokens, of time beside what running answers take, and of gaps beside
// the usual one.
struct Extent {
  int long_prompt;
  std::span<const int> budgets;
  std::span<const double> ratios, targets;
};

constexpr std::array kFullBudgets = {64, 128, 256, 512, 1024};
constexpr std::array kFewBudgets = {128, 512};
constexpr std::array kFullRatios = {0.5, 1.0, 2.0};
constexpr std::array kFullTargets = {2.0, 2.5, 3.0, 4.0, 5.0};
constexpr std::array kFewRatios = {1.0}, kFewTargets = {3.0};

Extent extent_of(bool full) {
  if (full) return {4096, kFullBudgets, kFullRatios, kFullTargets};
  return {1024, kFewBudgets, kFewRatios, kFewTargets};
}

class Chunking {
 public:
  Chunking(const ComparisonOptions& options, const ModelFacts& facts)
      : options_(options), facts_(facts), extent_(extent_of(options.full)) {
    engine_ = options.engine;
    engine_.max_num_seqs = std::max(engine_.max_num_seqs, kStreams + 1);
  }

  Result<BenchResult> run() {
    set_requests();
    OCTAVO_TRY(const Workload workload, workload_of(plan_, {}, options_, facts_.tokens));
    OCTAVO_CHECK_OK(check_lengths(workload, facts_.max_model_len));
    longest_ = workload[longest_prompt(workload)];
    OCTAVO_TRY(const double alone_s, time_alone(workload));
    OCTAVO_TRY(const double usual_gap_s, usual_gap(workload));
    add_variants(usual_gap_s);
    OCTAVO_TRY(BenchResult result, run_comparison(plan_, options_, facts_));
    OCTAVO_CHECK_OK(check_gaps(result));
    result.notes.push_back(fmt::format(
        "{} streams are being written when a prompt of {} tokens arrives; alone, its first token "
        "comes after {:.0f} ms. The gaps are those between two tokens of a stream until the "
        "prompt's first token; then the run ends.",
        workload.size() - 1, longest_.prompt_token_ids.size(), 1000 * alone_s));
    return result;
  }

 private:
  void set_requests() {
    plan_ = {.title = "A long prompt among streams",
             .headline = {"max_gap_ms", "long_ttft_ms"},
             .has_long_prompt = true};
    // A quarter of the context is left for the streams to go on.
    const int longest = std::min(extent_.long_prompt, facts_.max_model_len / 4 * 3);
    plan_.requests = {.num_requests = kStreams,
                      .prompt = Lengths::fixed(64),
                      .output = Lengths::fixed(std::min(1200, facts_.max_model_len / 2)),
                      .intruder = LongPrompt{longest, 0}};
  }

  // Nothing is cut, whatever it takes.
  EngineOptions unchunked() const {
    EngineOptions e = engine_;
    e.max_prefill_ratio = 0;
    e.max_inter_token_ms = 0;
    e.max_num_batched_tokens = static_cast<int>(longest_.prompt_token_ids.size()) + e.max_num_seqs;
    return e;
  }

  Result<double> time_alone(const Workload& workload) const {
    WorkloadRequest request = longest_;
    request.arrival_s = 0;
    request.output_tokens = 1;
    std::vector<double> ttft;
    for (int i = 0; i < kAloneRuns; ++i) {
      OCTAVO_TRY(const LoadedEngine loaded, load_for(unchunked(), workload));
      OCTAVO_TRY(const RunResult run,
                 run_workload(loaded, unchunked(), {request}, {.name = "alone"}));
      if (!run.requests[0].completed())
        return fail(ErrorCode::invalid_argument, fmt::format("the prompt of {} tokens fails alone",
                                                             run.requests[0].prompt_tokens));
      ttft.push_back(run.requests[0].ttft_s());
    }
    return median(std::move(ttft));
  }

  // Of the streams before the long prompt comes; zero if there is none.
  Result<double> usual_gap(const Workload& workload) const {
    OCTAVO_TRY(const LoadedEngine loaded, load_for(unchunked(), workload));
    RunnerOptions runner{.name = "usual gap"};
    runner.long_request = longest_prompt(workload);
    OCTAVO_TRY(const RunResult run, run_workload(loaded, unchunked(), workload, runner));
    const auto gaps = gaps_of(run);
    return gaps ? gaps->median_gap_s : 0;
  }

  void add_variants(double usual_gap_s) {
    plan_.variants.push_back({.name = "no chunks", .engine = unchunked()});
    EngineOptions e = unchunked();
    for (const int budget : extent_.budgets) {
      e.max_num_batched_tokens = std::max(budget, e.max_num_seqs);
      plan_.variants.push_back({.name = fmt::format("{} tokens a step", budget), .engine = e});
    }
    e.max_num_batched_tokens = std::max(engine_.max_num_batched_tokens, e.max_num_seqs);
    for (const double ratio : extent_.ratios) {
      e.max_prefill_ratio = ratio;
      plan_.variants.push_back(
          {.name = fmt::format("prefill at most {:.1f} x decode", ratio), .engine = e});
    }
    e.max_prefill_ratio = 0;
    for (const double target : extent_.targets) {
      if (usual_gap_s == 0) break;
      e.max_inter_token_ms = 1000 * target * usual_gap_s;
      plan_.variants.push_back(
          {.name = fmt::format("{:.1f} x the usual gap", target), .engine = e});
    }
  }

  static Result<void> check_gaps(const BenchResult& result) {
    const auto has_gaps = [](const RunResult& run) {
      return std::ranges::any_of(
          run.rounds, [](const FigureValues& round) { return round.contains("max_gap_ms"); });
    };
    if (std::ranges::any_of(result.runs, has_gaps)) return {};
    return fail(ErrorCode::invalid_argument,
                "in every run a stream ended before the long prompt's first token; give the "
                "streams longer answers, as in --synthetic "
                "requests=8,prompt=64,output=1200,long=4096@0");
  }

  const ComparisonOptions& options_;
  const ModelFacts& facts_;
  const Extent extent_;
  EngineOptions engine_;
  ComparisonPlan plan_;
  WorkloadRequest longest_;
};

}  // namespace

Result<BenchResult> compare_chunking(const ComparisonOptions& options, const ModelFacts& facts) {
  return Chunking(options, facts).run();
}

}  // namespace octavo
