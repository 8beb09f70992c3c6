#include "bench/comparison_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "bench/compare_runs.h"
#include "bench/runner.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;
using Answers = std::vector<std::vector<TokenId>>;  // of each request

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Whether one more round is made: as many as are asked for, or as there is time for.
class RoundLimit {
 public:
  explicit RoundLimit(const ComparisonOptions& options)
      : most_(options.repeat.value_or(kRounds)), timed_(!options.repeat && !options.full) {}

  int most() const { return most_; }

  bool another(int done) const {
    if (done == 0 || done >= most_) return done < most_;
    return !timed_ || has_time_for_another(done, seconds_since(start_));
  }

 private:
  int most_;
  bool timed_;
  Clock::time_point start_ = Clock::now();
};

class Rounds {
 public:
  Rounds(const ComparisonPlan& plan, const ComparisonOptions& options, const ModelFacts& facts)
      : plan_(plan), options_(options), facts_(facts), limit_(options) {}

  Result<BenchResult> run() {
    OCTAVO_CHECK_OK(make_workloads());
    std::vector<std::vector<RunResult>> runs(plan_.variants.size());
    for (int round = 0; limit_.another(round); ++round)
      for (size_t i = 0; i < runs.size(); ++i) {
        // Back and forth, so that what changes slowly befalls all alike.
        const size_t at = round % 2 == 0 ? i : runs.size() - 1 - i;
        OCTAVO_TRY(RunResult run, run_variant(at, round));
        runs[at].push_back(std::move(run));
      }
    return result_of(std::move(runs));
  }

 private:
  Result<void> make_workloads() {
    for (const Variant& variant : plan_.variants) {
      OCTAVO_TRY(workloads_.emplace_back(), workload_of(plan_, variant, options_, facts_.tokens));
      OCTAVO_CHECK_OK(check_lengths(workloads_.back(), facts_.max_model_len));
    }
    answers_.resize(plan_.variants.size());
    return {};
  }

  int max_concurrency(const Variant& variant) const {
    if (variant.max_concurrency) return *variant.max_concurrency;
    return options_.max_concurrency.empty() ? plan_.max_concurrency
                                            : options_.max_concurrency.front();
  }

  std::string name_of(const Variant& variant, int round) const {
    return limit_.most() == 1
               ? variant.name
               : fmt::format("round {} of {}, {}", round + 1, limit_.most(), variant.name);
  }

  Result<RunResult> run_variant(size_t index, int round) {
    const Variant& variant = plan_.variants[index];
    const Workload& workload = workloads_[index];
    OCTAVO_TRY(const LoadedEngine loaded, load_for(variant.engine, workload));
    Answers answers(workload.size());
    RunnerOptions runner{.name = variant.name,
                         .max_concurrency = max_concurrency(variant),
                         .block_map_rows = plan_.block_map_rows};
    if (plan_.has_long_prompt) runner.long_request = longest_prompt(workload);
    runner.on_progress = [&](int done, int total) {
      if (options_.on_progress) options_.on_progress(name_of(variant, round), done, total);
    };
    runner.on_answer = [&](size_t request, const std::vector<TokenId>& tokens) {
      answers[request] = tokens;
    };
    runner.on_progress(0, static_cast<int>(workload.size()));
    OCTAVO_TRY(RunResult run, run_workload(loaded, variant.engine, workload, runner));
    OCTAVO_CHECK_OK(check_completed(run));
    answers_[index] = std::move(answers);
    run.settings = settings_of(variant.engine);
    run.settings["max_concurrency"] = fmt::format("{}", runner.max_concurrency);
    run.x = variant.x;
    run.series = variant.series;
    run.group = variant.group;
    return run;
  }

  static Result<void> check_completed(const RunResult& run) {
    for (const RequestRecord& record : run.requests)
      if (!record.completed())
        return fail(ErrorCode::invalid_argument,
                    fmt::format("a request of {} prompt tokens failed in the run '{}'",
                                record.prompt_tokens, run.name));
    return {};
  }

  BenchResult result_of(std::vector<std::vector<RunResult>> runs) {
    BenchResult result{.title = plan_.title, .model = options_.engine.model};
    result.x_label = plan_.x_label;
    result.headline = plan_.headline;
    const size_t rounds = runs.front().size();
    if (!options_.repeat && rounds < static_cast<size_t>(limit_.most()))
      result.notes.push_back(fmt::format(
          "There was time for {} of {} rounds in {} s: --repeat makes as many as it says, --full "
          "longer ones.",
          rounds, limit_.most(), kTimeLimit_s));
    if (plan_.variants.size() > 1) result.notes.push_back(compare_answers());
    for (auto& of_variant : runs) result.runs.push_back(merge_rounds(std::move(of_variant)));
    return result;
  }

  // Greedy answers do not hang on who runs beside whom, in which blocks and chunks. A stream that
  // was stopped has the beginning of its answer.
  std::string compare_answers() const {
    const auto agree = [](const auto& a, const auto& b) {
      return std::equal(a.begin(), a.begin() + std::min(std::ssize(a), std::ssize(b)), b.begin());
    };
    for (size_t i = 1; i < answers_.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        for (size_t r = 0; plan_.variants[i].x == plan_.variants[k].x && r < answers_[i].size();
             ++r)
          if (!agree(answers_[i][r], answers_[k][r]))
            return fmt::format("Answers to the same requests differ between '{}' and '{}'.",
                               plan_.variants[k].name, plan_.variants[i].name);
    return "All runs gave the same answers to the same requests, token for token.";
  }

  const ComparisonPlan& plan_;
  const ComparisonOptions& options_;
  const ModelFacts& facts_;
  RoundLimit limit_;
  std::vector<Workload> workloads_;  // of each variant
  std::vector<Answers> answers_;     // the same, of the last round
};

}  // namespace

bool has_time_for_another(int done, double passed_s) {
  return passed_s + passed_s / done <= kTimeLimit_s;
}

Result<Workload> workload_of(const ComparisonPlan& plan, const Variant& variant,
                             const ComparisonOptions& options, TokenRange tokens) {
  if (variant.requests) return make_workload(*variant.requests, tokens);
  if (options.trace) return make_workload(*options.trace, 0, tokens);
  return make_workload(options.requests.value_or(plan.requests), tokens);
}

Result<BenchResult> run_comparison(const ComparisonPlan& plan, const ComparisonOptions& options,
                                   const ModelFacts& facts) {
  return Rounds(plan, options, facts).run();
}

}  // namespace octavo
