#include "bench/speculative.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "bench/median.h"
#include "bench/synthetic_drafter.h"
#include "engine/load_drafters.h"
#include "spec/draft_model.h"

namespace octavo {
namespace {

constexpr int kSyntheticTokens = 8;  // of a synthetic guess at most
constexpr const char* kOff = "off";

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

using KnownAnswers = std::map<std::vector<TokenId>, std::vector<TokenId>>;

struct Lane {
  SpeculativeMethod method;
  std::unique_ptr<SpeculativeEngine> engine;
};

// Guesses that are drawn themselves keep the distribution, not the answer of a seed.
bool keeps_answers(const SpeculativeMethod& method, const SamplingParams& params) {
  if (is_greedy(params) || method.config.empty()) return true;
  const auto config = parse_speculative_config(method.config);
  return config && config->rejection_sample_method == RejectionSampleMethod::strict;
}

Result<std::unique_ptr<Speculator>> synthetic_speculator(const SpeculativeMethod& method,
                                                         const LoadedEngine& loaded,
                                                         const KnownAnswers& answers) {
  const ModelLimits& limits = loaded.model->limits();
  std::unique_ptr<Drafter> model;
  if (loaded.draft.model) {
    OCTAVO_TRY(model, ModelDrafter::create(*loaded.draft.model,
                                           static_cast<int>(loaded.tokenizer->vocab_size())));
  }
  std::vector<std::unique_ptr<Drafter>> drafters;
  drafters.push_back(
      std::make_unique<SyntheticDrafter>(answers, *method.synthetic, std::move(model)));
  const int most = std::min(limits.max_logits_rows, limits.max_num_batched_tokens) - 1;
  return std::make_unique<Speculator>(
      SpeculatorOptions{.num_speculative_tokens = std::min(kSyntheticTokens, most),
                        .adaptive = method.adaptive,
                        .clock = seconds_now},
      std::move(drafters));
}

Result<std::unique_ptr<Speculator>> speculator_of(const SpeculativeMethod& method,
                                                  const LoadedEngine& loaded,
                                                  const KnownAnswers& answers) {
  if (method.synthetic) return synthetic_speculator(method, loaded, answers);
  OCTAVO_TRY(const SpeculativeConfig config, parse_speculative_config(method.config));
  return make_speculator(config, drafting_models(loaded),
                         static_cast<int>(loaded.tokenizer->vocab_size()));
}

const char* text_of(const std::optional<bool>& same) {
  return !same ? "n/a" : *same ? "yes" : "no";
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

double ratio(int64_t part, int64_t whole) {
  return share(static_cast<double>(part), static_cast<double>(whole));
}

// One cell of the table: a task at a batch size, with every lane.
class Cell {
 public:
  Cell(std::vector<Lane>& lanes, const SpeculativeTask& task, int batch_size)
      : lanes_(lanes), task_(task), batch_size_(batch_size), runs_(lanes.size()) {}

  // Everybody once, each time beginning with another.
  Result<void> round(int number, int output_len) {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      const size_t lane = (i + static_cast<size_t>(number)) % lanes_.size();
      OCTAVO_TRY(auto run, lanes_[lane].engine->run(task_, batch_size_, output_len));
      runs_[lane].push_back(std::move(run));
    }
    return {};
  }

  std::vector<SpeculativeRow> rows() const {
    std::vector<SpeculativeRow> rows;
    for (size_t lane = 0; lane < lanes_.size(); ++lane) rows.push_back(row(lane));
    return rows;
  }

 private:
  SpeculativeRow row(size_t lane) const {
    const std::vector<SpeculativeRun>&runs = runs_[lane], &off = runs_[0];
    SpeculativeRow row{.task = task_.name,
                       .method = lanes_[lane].method.name,
                       .batch_size = batch_size_,
                       .record = {}};
    if (!keeps_answers(lanes_[lane].method, task_.params)) row.same_answers.reset();
    std::vector<double> speeds, off_speeds, ratios;
    for (size_t i = 0; i < runs.size(); ++i) {
      speeds.push_back(runs[i].tok_s());
      off_speeds.push_back(off[i].tok_s());
      ratios.push_back(share(speeds[i], off_speeds[i]));
      if (runs[i].answers != off[0].answers && row.same_answers) row.same_answers = false;
    }
    row.tok_s = median(speeds);
    row.off_tok_s = median(off_speeds);
    row.speedup = median(ratios);
    row.lowest = std::ranges::min(ratios);
    row.highest = std::ranges::max(ratios);
    if (row.method != kOff && row.lowest > 0) row.change = change_of(ratios);
    const SpeculativeRun& typical = *std::ranges::min_element(
        runs, {}, [&](const SpeculativeRun& run) { return std::abs(run.tok_s() - row.tok_s); });
    describe(typical, row);
    if (lanes_[lane].method.synthetic) row.predicted = predict(lane, typical, row);
    keep_record(typical, lanes_[lane].method, row);
    return row;
  }

  void describe(const SpeculativeRun& run, SpeculativeRow& row) const {
    const SpeculatorStats& guesses = run.guesses;
    row.acceptance = ratio(guesses.num_accepted_tokens, guesses.num_draft_tokens);
    row.accepted_length =
        guesses.num_drafts > 0 ? 1 + ratio(guesses.num_accepted_tokens, guesses.num_drafts) : 1;
    row.tokens_per_step = ratio(run.tokens, run.slots);
    row.draft_share = share(run.draft_s, run.seconds);
    const double guess_s = share(run.draft_s, static_cast<double>(guesses.num_draft_tokens));
    row.draft_cost =
        share(guess_s * batch_size_, lanes_[0].engine->step_model().predict(work_of(run, 0)));
  }

  // A step of the run as it is on average, with `num_drafts` guesses for each sequence.
  StepWork work_of(const SpeculativeRun& run, int num_drafts) const {
    const double context = ratio(run.kv_tokens, run.slots);
    return {.kv_tokens = std::llround(context * batch_size_),
            .num_seqs = batch_size_,
            .draft_tokens = num_drafts * batch_size_};
  }

  SpeculativePrediction predict(size_t lane, const SpeculativeRun& run,
                                const SpeculativeRow& row) const {
    const StepTimeModel model = lanes_[lane].engine->step_model();
    const double off_s = lanes_[0].engine->step_model().predict(work_of(run, 0));
    // Every guess has a first token, and whether that comes true depends on no other.
    const double rate = ratio(run.guesses.num_accepted_tokens_per_pos[0], run.guesses.num_drafts);
    SpeculativePrediction best{.speedup = 1, .num_drafts = 0};
    double tokens = 1, reached = 1;
    for (int k = 1; k <= kSyntheticTokens; ++k) {
      tokens += reached *= rate;
      const double seconds = model.predict(work_of(run, k)) + k * row.draft_cost * off_s;
      const double speedup = share(tokens * off_s, seconds);
      if (speedup > best.speedup) best = {.speedup = speedup, .num_drafts = k};
    }
    return best;
  }

  void keep_record(const SpeculativeRun& run, const SpeculativeMethod& method,
                   SpeculativeRow& row) const {
    row.record = run.record;
    row.record.name = fmt::format("{}, batch {}, {}", row.task, batch_size_, row.method);
    row.record.settings = {{"task", row.task},
                           {"batch_size", fmt::format("{}", batch_size_)},
                           {"method", row.method},
                           {"speculative_config", method.config},
                           {"decode_tok_s", fmt::format("{:.2f}", row.tok_s)},
                           {"speedup", fmt::format("{:.3f}", row.speedup)},
                           {"speedup_lowest", fmt::format("{:.3f}", row.lowest)},
                           {"speedup_highest", fmt::format("{:.3f}", row.highest)},
                           {"acceptance", fmt::format("{:.3f}", row.acceptance)},
                           {"accepted_length", fmt::format("{:.2f}", row.accepted_length)},
                           {"tokens_per_step", fmt::format("{:.2f}", row.tokens_per_step)},
                           {"draft_share", fmt::format("{:.4f}", row.draft_share)},
                           {"same_answers", text_of(row.same_answers)}};
    if (!row.predicted) return;
    row.record.settings["draft_cost"] = fmt::format("{:.3f}", row.draft_cost);
    row.record.settings["predicted_speedup"] = fmt::format("{:.3f}", row.predicted->speedup);
  }

  std::vector<Lane>& lanes_;
  const SpeculativeTask& task_;
  int batch_size_;
  std::vector<std::vector<SpeculativeRun>> runs_;  // by lane and round
};

// Before anything is measured: prompts are the program's own, and nobody knows how long they are.
Result<void> check_fits(const SpeculativeTask& task, int output_len, int max_model_len) {
  size_t longest = 0;
  for (const auto& prompt : task.prompts) longest = std::max(longest, prompt.size());
  const auto needed = static_cast<int64_t>(longest) + output_len;
  if (needed <= max_model_len) return {};
  return fail(
      ErrorCode::context_overflow,
      fmt::format("the task {} needs {} tokens, {} of its longest prompt and {} of an "
                  "answer, and the context holds {}; lower --output-len or --num-prompts, "
                  "leave the task out of --tasks, or raise --max-model-len if the model has "
                  "more",
                  task.name, needed, longest, output_len, max_model_len));
}

class Measurement {
 public:
  Measurement(const LoadedEngine& loaded, const SpeculativeOptions& options)
      : loaded_(loaded), options_(options) {}

  Result<std::vector<SpeculativeRow>> measure() {
    for (const std::string& name : options_.tasks) {
      OCTAVO_TRY(tasks_.emplace_back(), make_speculative_task(loaded_, name, options_.num_prompts));
      tasks_.back().params.ignore_eos |= options_.ignore_eos;
      OCTAVO_CHECK_OK(check_fits(tasks_.back(), options_.output_len, loaded_.max_model_len));
    }
    OCTAVO_CHECK_OK(make_lanes());
    std::vector<std::vector<SpeculativeRow>> by_task(tasks_.size());
    for (const int batch_size : options_.batch_sizes) {
      OCTAVO_CHECK_OK(warm_up(batch_size));
      for (size_t i = 0; i < tasks_.size(); ++i) {
        OCTAVO_TRY(auto rows, measure(tasks_[i], batch_size));
        std::ranges::move(rows, std::back_inserter(by_task[i]));
      }
    }
    std::vector<SpeculativeRow> all;
    for (auto& rows : by_task) std::ranges::move(rows, std::back_inserter(all));
    return all;
  }

 private:
  Result<void> make_lanes() {
    OCTAVO_CHECK_OK(add_lane({.name = kOff}));
    if (std::ranges::any_of(options_.methods, [](auto& m) { return m.synthetic.has_value(); }))
      OCTAVO_CHECK_OK(learn_answers());
    for (const SpeculativeMethod& method : options_.methods) OCTAVO_CHECK_OK(add_lane(method));
    return {};
  }

  Result<void> add_lane(const SpeculativeMethod& method) {
    std::unique_ptr<Speculator> speculator;
    if (method.name != kOff) {
      OCTAVO_TRY(speculator, speculator_of(method, loaded_, answers_));
    }
    OCTAVO_TRY(auto engine,
               SpeculativeEngine::create(loaded_, options_.engine, std::move(speculator)));
    lanes_.push_back({method, std::move(engine)});
    return {};
  }

  Result<void> learn_answers() {
    for (const SpeculativeTask& task : tasks_) {
      OCTAVO_TRY(SpeculativeRun run, lanes_[0].engine->run(task, 1, options_.output_len));
      for (size_t i = 0; i < task.prompts.size(); ++i)
        answers_[task.prompts[i]] = std::move(run.answers[i]);
    }
    return {};
  }

  // So that every engine knows what its steps of this size take.
  Result<void> warm_up(int batch_size) {
    tell();
    for (Lane& lane : lanes_)
      OCTAVO_CHECK_OK(lane.engine->run(tasks_[0], batch_size, options_.output_len)
                          .map([](const SpeculativeRun&) {}));
    ++done_;
    return {};
  }

  Result<std::vector<SpeculativeRow>> measure(const SpeculativeTask& task, int batch_size) {
    Cell cell(lanes_, task, batch_size);
    for (int round = 0; round < options_.repeat; ++round) {
      tell();
      OCTAVO_CHECK_OK(cell.round(round, options_.output_len));
      ++done_;
    }
    return cell.rows();
  }

  void tell() const {
    const size_t rounds = tasks_.size() * static_cast<size_t>(options_.repeat) + 1;
    if (options_.on_progress)
      options_.on_progress(done_, static_cast<int>(rounds * options_.batch_sizes.size()));
  }

  const LoadedEngine& loaded_;
  const SpeculativeOptions& options_;
  std::vector<SpeculativeTask> tasks_;
  KnownAnswers answers_;
  std::vector<Lane> lanes_;  // the first without guesses
  int done_ = 0;             // rounds
};

Result<void> check(const SpeculativeOptions& options) {
  const auto refuse = [](std::string_view what) {
    return fail(ErrorCode::invalid_argument, fmt::format("there must be {}", what));
  };
  if (options.tasks.empty()) return refuse("a task");
  if (options.batch_sizes.empty() || std::ranges::min(options.batch_sizes) < 1)
    return refuse("batch sizes, each 1 or more");
  if (options.output_len < 2 || options.num_prompts < 1 || options.repeat < 1)
    return refuse("2 tokens of an answer, 1 prompt and 1 round at least");
  for (const SpeculativeMethod& method : options.methods)
    if (method.synthetic && !(*method.synthetic >= 0 && *method.synthetic <= 1))
      return refuse("a share from 0 to 1 of synthetic guesses that come true");
  return {};
}

}  // namespace

Result<std::vector<SpeculativeRow>> measure_speculation(const LoadedEngine& loaded,
                                                        const SpeculativeOptions& options) {
  OCTAVO_CHECK_OK(check(options));
  return Measurement(loaded, options).measure();
}

}  // namespace octavo
