#include "bench/stream_gaps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/figures.h"
#include "bench/median.h"
#include "bench/runner.h"

namespace octavo {
namespace {

constexpr int kStreams = 8;
constexpr int kLongPrompt = 4096;
constexpr double kArrival_s = 1;  // of the long prompt, when all streams are being written
constexpr std::array kBudgets = {64, 128, 256, 512, 1024};
// Of the median gap before: what the step model is asked for.
constexpr std::array kPrefillRatios = {0.5, 1.0, 2.0};
constexpr std::array kGapTargets = {2.0, 2.5, 3.0, 4.0, 5.0};

const RequestRecord& long_prompt_of(const RunResult& run) {
  return *std::max_element(run.requests.begin(), run.requests.end(),
                           [](const RequestRecord& a, const RequestRecord& b) {
                             return a.prompt_tokens < b.prompt_tokens;
                           });
}

class Chunking {
 public:
  Chunking(const ComparisonOptions& options, const ModelFacts& facts)
      : options_(options), engine_(options.engine), facts_(facts) {
    engine_.max_num_seqs = std::max(engine_.max_num_seqs, kStreams + 1);
  }

  Result<BenchResult> run() {
    OCTAVO_CHECK_OK(make_requests());
    OCTAVO_CHECK_OK(measure_alone());
    EngineOptions e = engine_;
    e.max_prefill_ratio = 0;
    e.max_num_batched_tokens = longest_ + e.max_num_seqs;
    OCTAVO_TRY(const auto unchunked, measure("no chunks", e));
    for (const int budget : kBudgets) {
      e.max_num_batched_tokens = std::max(budget, e.max_num_seqs);
      OCTAVO_TRY(const auto gaps, measure(fmt::format("{} tokens a step", budget), e));
      if (gaps && budget == kBudgets.front()) usual_gap_s_ = gaps->median_gap_s;
    }
    if (unchunked) usual_gap_s_ = unchunked->median_gap_s;
    e.max_num_batched_tokens = std::max(engine_.max_num_batched_tokens, e.max_num_seqs);
    for (const double ratio : kPrefillRatios) {
      e.max_prefill_ratio = ratio;
      OCTAVO_TRY(const auto gaps,
                 measure(fmt::format("prefill at most {:.1f} x decode", ratio), e));
      (void)gaps;
    }
    e.max_prefill_ratio = 0;
    for (const double target : kGapTargets) {
      e.max_inter_token_ms = 1000 * target * usual_gap_s_;
      OCTAVO_TRY(const auto gaps, measure(fmt::format("{:.1f} x the usual gap", target), e));
      (void)gaps;
    }
    if (num_void_ == static_cast<int>(result_.runs.size()))
      return fail(ErrorCode::invalid_argument,
                  "in every run a stream ended before the long prompt's first token; give the "
                  "streams longer answers and one long prompt that comes later, as in "
                  "--synthetic requests=8,prompt=64,output=1200,long=4096@1");
    result_.notes.push_back(fmt::format(
        "Eight streams are being written when a prompt of {} tokens arrives. Alone, its first "
        "token "
        "comes after {:.0f} ms. The largest gap of a stream while it is read is compared with the "
        "median gap before.",
        longest_, 1000 * alone_s_));
    return std::move(result_);
  }

 private:
  Result<void> make_requests() {
    // A quarter of the context is left for the streams to go on.
    longest_ = std::min(kLongPrompt, facts_.max_model_len / 4 * 3);
    SyntheticSpec spec{.num_requests = kStreams,
                       .prompt = Lengths::fixed(64),
                       .output = Lengths::fixed(std::min(1200, facts_.max_model_len / 2)),
                       .intruder = LongPrompt{longest_, kArrival_s}};
    if (options_.requests) spec = *options_.requests;
    OCTAVO_TRY(workload_, make_workload(spec, facts_.tokens));
    OCTAVO_CHECK_OK(check_lengths(workload_, facts_.max_model_len));
    result_.title = "A long prompt among streams";
    result_.model = options_.engine.model;
    return {};
  }

  Result<void> measure_alone() {
    EngineOptions e = engine_;
    Workload alone = {*std::max_element(
        workload_.begin(), workload_.end(), [](const WorkloadRequest& a, const WorkloadRequest& b) {
          return a.prompt_token_ids.size() < b.prompt_token_ids.size();
        })};
    longest_ = static_cast<int>(alone[0].prompt_token_ids.size());
    alone[0].arrival_s = 0;
    alone[0].output_tokens = 1;
    std::vector<double> ttft;
    for (int i = 0; i < std::max(options_.repeat, 3); ++i) {
      tell("alone");
      OCTAVO_TRY(const LoadedEngine loaded, load_for(e, workload_));
      OCTAVO_TRY(const RunResult run, run_workload(loaded, e, alone, {.name = "alone"}));
      ttft.push_back(run.requests[0].end_s - run.requests[0].arrival_s);
    }
    alone_s_ = median(std::move(ttft));
    return {};
  }

  // The median of the rounds, by the largest gap; none counts that is void.
  Result<std::optional<StreamGaps>> measure(std::string name, const EngineOptions& e) {
    std::vector<std::pair<StreamGaps, RunResult>> valid;
    RunResult last;
    for (int i = 0; i < options_.repeat; ++i) {
      tell(name);
      OCTAVO_TRY(const LoadedEngine loaded, load_for(e, workload_));
      OCTAVO_TRY(last, run_workload(loaded, e, workload_, {.name = name}));
      last.settings = settings_of(e);
      if (const auto gaps = gaps_of(last)) valid.emplace_back(*gaps, std::move(last));
    }
    if (valid.empty()) {
      last.settings["void"] = "a stream had ended before the long prompt's first token";
      ++num_void_;
      result_.runs.push_back(std::move(last));
      return std::optional<StreamGaps>();
    }
    std::sort(valid.begin(), valid.end(), [](const auto& a, const auto& b) {
      return a.first.largest_gap_s < b.first.largest_gap_s;
    });
    auto& [gaps, run] = valid[(valid.size() - 1) / 2];
    run.settings["median gap before"] = fmt::format("{:.1f} ms", 1000 * gaps.median_gap_s);
    run.settings["P99 gap"] = fmt::format("{:.1f} ms", 1000 * gaps.p99_gap_s);
    run.settings["largest gap"] = fmt::format("{:.1f} ms", 1000 * gaps.largest_gap_s);
    run.settings["gap ratio"] = fmt::format("{:.2f} x", gaps.largest_gap_s / gaps.median_gap_s);
    run.settings["TTFT"] = fmt::format("{:.0f} ms", 1000 * gaps.ttft_s);
    run.settings["TTFT ratio"] = fmt::format("{:.2f} x", gaps.ttft_s / alone_s_);
    const StreamGaps chosen = gaps;
    result_.runs.push_back(std::move(run));
    return std::optional<StreamGaps>(chosen);
  }

  void tell(std::string_view name) {
    const int total = std::max(options_.repeat, 3) +
                      options_.repeat * static_cast<int>(1 + kBudgets.size() + kGapTargets.size());
    if (options_.on_progress) options_.on_progress(name, done_++, total);
  }

  const ComparisonOptions& options_;
  EngineOptions engine_;
  const ModelFacts& facts_;
  Workload workload_;
  BenchResult result_;
  int longest_ = 0;
  int done_ = 0, num_void_ = 0;
  double alone_s_ = 0, usual_gap_s_ = 0;
};

}  // namespace

std::optional<StreamGaps> gaps_of(const RunResult& run) {
  const RequestRecord& late = long_prompt_of(run);
  if (late.token_s.empty()) return {};
  const double first_token = late.token_s.front();
  std::vector<double> before, during;
  StreamGaps gaps{.ttft_s = first_token - late.arrival_s};
  for (const RequestRecord& stream : run.requests) {
    if (&stream == &late) continue;
    if (stream.end_s < first_token) return {};
    for (size_t i = 1; i < stream.token_s.size(); ++i) {
      const double gap = stream.token_s[i] - stream.token_s[i - 1];
      if (stream.token_s[i] < late.arrival_s)
        before.push_back(gap);
      else if (stream.token_s[i - 1] <= first_token)
        during.push_back(gap);
    }
  }
  if (before.empty() || during.empty()) return {};
  gaps.median_gap_s = median(std::move(before));
  const Summary summary = summarize(during);
  gaps.p99_gap_s = summary.p99;
  gaps.largest_gap_s = summary.max;
  return gaps;
}

Result<BenchResult> compare_chunking(const ComparisonOptions& options, const ModelFacts& facts) {
  return Chunking(options, facts).run();
}

}  // namespace octavo
