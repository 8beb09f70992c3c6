#include "bench/latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/free_memory.h"
#include "base/rng.h"
#include "bench/median.h"
#include "bench/work.h"
#include "kernels/isa.h"
#include "kv/block_table.h"

namespace octavo {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Ordinary tokens, drawn by place: the same in every run.
class Tokens {
 public:
  explicit Tokens(const LoadedEngine& engine) {
    const auto count = std::min(static_cast<int32_t>(engine.tokenizer->vocab_size()),
                                engine.model->limits().vocab_size);
    for (int32_t id = 0; id < count; ++id)
      if (!engine.tokenizer->is_control(TokenId{id})) ordinary_.push_back(TokenId{id});
    if (ordinary_.empty()) ordinary_.push_back(TokenId{0});
  }
  TokenId at(int sequence, int position) const {
    const double x = uniform(0, static_cast<uint32_t>(sequence), static_cast<uint64_t>(position));
    return ordinary_[static_cast<size_t>(x * static_cast<double>(ordinary_.size()))];
  }

 private:
  std::vector<TokenId> ordinary_;
};

// Runs steps over sequences that each own their blocks, but for those of a prefix that they share.
class Runner {
 public:
  static Result<std::unique_ptr<Runner>> create(const LoadedEngine& engine, int shared_prefix) {
    const ModelLimits& limits = engine.model->limits();
    OCTAVO_TRY(auto blocks, BlockPool::create(limits.num_blocks, limits.block_size));
    return std::unique_ptr<Runner>(new Runner(engine, std::move(blocks), shared_prefix));
  }

  // From here on `count` sequences, each with the first `depth` tokens of sequence 0 in its cache.
  Result<void> prepare(int count, int depth) {
    while (std::cmp_greater(tables_.size(), count)) tables_.pop_back();
    if (tables_.empty()) OCTAVO_CHECK_OK(add_table(0));
    for (BlockTable& table : tables_) OCTAVO_CHECK_OK(table.truncate(std::min(depth, filled_)));
    if (filled_ < depth) {
      tables_.erase(tables_.begin() + 1, tables_.end());
      OCTAVO_CHECK_OK(read(filled_, depth - filled_));
    }
    filled_ = depth;
    while (std::cmp_less(tables_.size(), count)) OCTAVO_CHECK_OK(add_table(depth));
    return {};
  }

  // Sequence 0 reads `count` tokens from position `first` on, in chunks, and gets the last one's
  // logits.
  Result<void> read(int first, int count) {
    for (const int end = first + count; first < end;) {
      const int chunk = std::min(model_.limits().max_num_batched_tokens, end - first);
      OCTAVO_CHECK_OK(reserve(tables_.front(), first + chunk));
      tokens_.clear();
      for (int i = 0; i < chunk; ++i) tokens_.push_back(drawn_.at(0, first + i));
      const BatchSequence sequence{0, chunk, first, tables_.front().block_ids()};
      first += chunk;
      const std::vector<int> rows(first == end ? 1 : 0, chunk - 1);
      model_.forward({.tokens = tokens_, .sequences = {&sequence, 1}, .logits_rows = rows});
      if (first == end) logits(rows);
    }
    return {};
  }

  // Every sequence gets one more token, at `position`, in as few forwards as hold them.
  Result<void> decode(int position) {
    const auto width = static_cast<size_t>(model_.limits().max_num_batched_tokens);
    for (size_t first = 0; first < tables_.size(); first += width) {
      const size_t end = std::min(first + width, tables_.size());
      tokens_.clear();
      sequences_.clear();
      std::vector<int> rows;
      for (size_t i = first; i < end; ++i) {
        OCTAVO_CHECK_OK(reserve(tables_[i], position + 1));
        const auto row = static_cast<int>(i - first);
        tokens_.push_back(drawn_.at(static_cast<int>(i), position));
        sequences_.push_back({row, 1, position, tables_[i].block_ids()});
        rows.push_back(row);
      }
      model_.forward({.tokens = tokens_, .sequences = sequences_, .logits_rows = rows});
      logits(rows);
    }
    return {};
  }

  Result<void> truncate(int depth) {
    for (BlockTable& table : tables_) OCTAVO_CHECK_OK(table.truncate(depth));
    return {};
  }

 private:
  Runner(const LoadedEngine& engine, std::unique_ptr<BlockPool> blocks, int shared_prefix)
      : model_(*engine.model),
        blocks_(std::move(blocks)),
        drawn_(engine),
        shared_prefix_(shared_prefix),
        logits_(static_cast<size_t>(model_.limits().max_logits_rows) *
                static_cast<size_t>(model_.limits().logits_stride)) {}

  Result<void> reserve(BlockTable& table, int tokens) {
    OCTAVO_TRY(const std::vector<BlockCopy> copies, table.reserve(tokens));
    for (const BlockCopy& copy : copies) model_.copy_block(copy.from, copy.to);
    return {};
  }

  Result<void> add_table(int depth) {
    const int shared = std::min(shared_prefix_, depth);
    BlockTable table = tables_.empty() ? BlockTable(*blocks_) : tables_.front().fork();
    OCTAVO_CHECK_OK(table.truncate(shared));
    OCTAVO_CHECK_OK(reserve(table, depth));
    const auto own = static_cast<size_t>(shared / blocks_->block_size());
    for (size_t i = own; i < table.block_ids().size(); ++i)
      model_.copy_block(tables_.front().block_ids()[i], table.block_ids()[i]);
    tables_.push_back(std::move(table));
    return {};
  }

  void logits(const std::vector<int>& rows) {
    const auto most = static_cast<size_t>(model_.limits().max_logits_rows);
    for (size_t first = 0; first < rows.size(); first += most)
      model_.logits(std::span(rows).subspan(first, std::min(most, rows.size() - first)),
                    logits_.data());
  }

  Transformer& model_;
  std::unique_ptr<BlockPool> blocks_;
  Tokens drawn_;
  int shared_prefix_;
  std::vector<float> logits_;
  std::vector<BlockTable> tables_;
  int filled_ = 0;  // tokens of sequence 0 that are as prepare() left them

  std::vector<TokenId> tokens_;  // of the current step
  std::vector<BatchSequence> sequences_;
};

TimeShare shares_of(const StepProfile& profile, double wall_s) {
  TimeShare shares;
  double inside = 0;
  for (size_t i = 0; i < kStepPartNames.size(); ++i) {
    const double share = profile.seconds(static_cast<StepPart>(i)) / wall_s;
    shares.emplace_back(kStepPartNames[i], share);
    inside += share;
  }
  shares.emplace_back(kRestOfTime, std::max(0.0, 1 - inside));
  return shares;
}

struct Timing {
  double seconds = 0;  // median
  TimeShare shares;
};

// pass() does the work once. Clocks between kernels cost a little, so a pass of its own has them.
template <class Pass>
Result<Timing> time_passes(Transformer& model, int repeat, const Pass& pass) {
  std::vector<double> seconds;
  for (int i = 0; i < repeat; ++i) {
    const auto start = Clock::now();
    OCTAVO_CHECK_OK(pass());
    seconds.push_back(seconds_since(start));
  }
  StepProfile profile;
  model.set_profile(&profile);
  const auto start = Clock::now();
  const Result<void> profiled = pass();
  const double wall_s = seconds_since(start);
  model.set_profile(nullptr);
  OCTAVO_CHECK_OK(profiled);
  return Timing{median(std::move(seconds)), shares_of(profile, wall_s)};
}

class Measurement {
 public:
  Measurement(LoadedEngine& engine, Runner& runner, LimitsProbe& probe,
              const LatencyOptions& options)
      : model_(*engine.model),
        runner_(runner),
        probe_(probe),
        options_(options),
        work_(engine.config, model_) {
    limits_.int8_gmac_s = probe.int8_gmac_s();
    limits_.fp32_gflop_s = probe.fp32_gflop_s();
  }

  Result<LatencyReport> run(LatencyPlan plan) {
    LatencyReport report;
    report.skipped = std::move(plan.skipped);
    OCTAVO_CHECK_OK(warm_up());
    LatencyResult result;
    for (const LatencyCase& which : plan.cases) {
      if (options_.on_progress)
        options_.on_progress(static_cast<int>(report.results.size()),
                             static_cast<int>(plan.cases.size()));
      const bool is_new_depth = report.results.empty() || which.depth != result.which.depth;
      result.which = which;
      if (is_new_depth) OCTAVO_CHECK_OK(measure_prefill(result));
      OCTAVO_CHECK_OK(measure_decode(result));
      report.results.push_back(result);
    }
    report.limits = limits_;
    report.limits.read_gb_s = median(read_speeds_);
    return report;
  }

 private:
  // The memory of activations is written for the first time, which costs.
  Result<void> warm_up() {
    OCTAVO_CHECK_OK(runner_.prepare(1, 0));
    OCTAVO_CHECK_OK(runner_.read(
        0, std::min(options_.lengths.prompt_tokens, model_.limits().max_num_batched_tokens)));
    return runner_.truncate(0);
  }

  Result<void> measure_prefill(LatencyResult& result) {
    const int tokens = options_.lengths.prompt_tokens, depth = result.which.depth;
    OCTAVO_CHECK_OK(runner_.prepare(1, depth));
    OCTAVO_TRY(Timing timing, time_passes(model_, options_.repeat, [&]() -> Result<void> {
                 OCTAVO_CHECK_OK(runner_.truncate(depth));
                 return runner_.read(depth, tokens);
               }));
    result.prefill_tok_s = tokens / timing.seconds;
    result.prefill_multiply_share =
        work_.prefill(tokens, depth).multiply_seconds(limits_) / timing.seconds;
    result.prefill_time = std::move(timing.shares);
    return runner_.truncate(depth);
  }

  Result<void> measure_decode(LatencyResult& result) {
    const int tokens = options_.lengths.gen_tokens, depth = result.which.depth,
              sequences = result.which.batch_size;
    OCTAVO_CHECK_OK(runner_.prepare(sequences, depth));
    const double read_before = probe_.read_gb_s();
    OCTAVO_TRY(Timing timing, time_passes(model_, options_.repeat, [&]() -> Result<void> {
                 OCTAVO_CHECK_OK(runner_.truncate(depth));
                 for (int i = 0; i < tokens; ++i) OCTAVO_CHECK_OK(runner_.decode(depth + i));
                 return {};
               }));
    const double read_after = probe_.read_gb_s();
    read_speeds_.insert(read_speeds_.end(), {read_before, read_after});
    result.read_gb_s = limits_.read_gb_s = (read_before + read_after) / 2;
    const Work work = work_.decode_step(sequences, depth + (tokens - 1) / 2.0,
                                        std::min(options_.shared_prefix, depth));
    const double step_s = timing.seconds / tokens;
    result.decode_tok_s = sequences / step_s;
    result.weight_bytes_per_token = work_.weight_bytes() / sequences;
    result.kv_bytes_per_token = (work.read_bytes - work_.weight_bytes()) / sequences;
    result.decode_read_share = work.read_seconds(limits_) / step_s;
    result.decode_multiply_share = work.multiply_seconds(limits_) / step_s;
    result.decode_time = std::move(timing.shares);
    return runner_.truncate(depth);
  }

  Transformer& model_;
  Runner& runner_;
  LimitsProbe& probe_;
  const LatencyOptions& options_;
  WorkModel work_;
  MachineLimits limits_;
  std::vector<double> read_speeds_;
};

LatencyRoom room_of(const LoadedEngine& engine) {
  const ModelLimits& limits = engine.model->limits();
  return {.context_length = limits.context_length,
          .block_size = limits.block_size,
          .num_blocks = limits.num_blocks,
          .bytes_per_block = static_cast<int64_t>(engine.model->kv_layout().bytes_per_block()),
          .free_bytes = free_memory_bytes()};
}

}  // namespace

double outside_kernels(const TimeShare& shares) {
  double outside = 0;
  for (const auto& [name, share] : shares)
    for (const std::string_view part : {"plan", "wait", "engine", "rest"})
      if (name == part) outside += share;
  return outside;
}

Result<LatencyReport> measure_latency(LoadedEngine& engine, const LatencyOptions& options) {
  OCTAVO_TRY(const kernels::Ops* ops, kernels::select_isa(engine.isa));
  OCTAVO_TRY(LatencyPlan plan,
             plan_latency(options.lengths, options.depths, options.batch_sizes, room_of(engine)));
  if (options.shared_prefix < 0)
    return fail(ErrorCode::invalid_argument,
                fmt::format("shared_prefix is {}; at least 0", options.shared_prefix));
  if (options.repeat < 1)
    return fail(ErrorCode::invalid_argument,
                fmt::format("repeat is {}; at least 1", options.repeat));
  OCTAVO_TRY(LimitsProbe probe, LimitsProbe::create(*ops, *engine.pool));
  OCTAVO_TRY(const std::unique_ptr<Runner> runner, Runner::create(engine, options.shared_prefix));
  return Measurement(engine, *runner, probe, options).run(std::move(plan));
}

}  // namespace octavo
