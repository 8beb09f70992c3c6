#include "server/metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "base/version.h"
#include "server/metric_series.h"
#include "server/process_stats.h"

namespace octavo {
namespace {

using octavo::raise_to;
using prometheus::Counter;

void raise_to(Counter& counter, int64_t count) { raise_to(counter, static_cast<double>(count)); }

void raise_to(Twin<Counter>& twin, int64_t count) {
  raise_to(twin.now, count);
  raise_to(twin.old, count);
}

double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Clocks of two threads may differ by a little.
double seconds(double value) { return std::max(value, 0.0); }

StepKind kind_of(const Step& step) {
  if (step.work.prefill_tokens == 0) return StepKind::decode;
  return step.work.num_seqs == 0 ? StepKind::prefill : StepKind::mixed;
}

// Of a request as a whole: the worst of its choices.
FinishReason reason_of(const RequestOutput& output) {
  if (output.error) return FinishReason::error;
  FinishReason worst = FinishReason::stop;
  for (const CompletionOutput& choice : output.outputs)
    worst = std::max(worst, choice.finish_reason);
  return worst;
}

void add_constants(const SeriesMaker& make, const MetricsOptions& options) {
  make.gauge("vllm:cache_config_info", "Settings of the KV cache, as labels.",
             {options.cache_config.begin(), options.cache_config.end()})
      .Set(1);
  make.gauge("octavo:build_info", "What runs, as labels.",
             {{"version", std::string(version())},
              {"commit", std::string(commit())},
              {"isa", options.isa}})
      .Set(1);
}

}  // namespace

struct Metrics::Series {
  explicit Series(const MetricsOptions& options)
      : make(registry, {{"model_name", options.model_name}, {"engine", "0"}}),
        requests(make, options.max_model_len),
        engine(make),
        server(make, SeriesMaker(registry, {})),
        rejections(make),
        http(SeriesMaker(registry, {})),
        bytes_per_block(static_cast<double>(options.bytes_per_block)),
        draft_bytes_per_block(static_cast<double>(options.draft_bytes_per_block)) {
    if (options.num_speculative_tokens > 0)
      speculation.emplace(make, options.num_speculative_tokens, options.draft_bytes_per_block > 0);
    add_constants(make, options);
  }

  prometheus::Registry registry;
  SeriesMaker make;
  RequestSeries requests;
  EngineSeries engine;
  std::optional<SpeculationSeries> speculation;
  ServerSeries server;
  RejectionSeries rejections;
  HttpSeries http;
  double bytes_per_block, draft_bytes_per_block;
};

Metrics::Metrics(MetricsOptions options) : series_(std::make_unique<Series>(options)) {}
Metrics::~Metrics() = default;

// --- requests -------------------------------------------------------------------------------

void Metrics::on_inter_token(double gap_s) {
  series_->requests.inter_token.now.Observe(seconds(gap_s));
  series_->requests.inter_token.old.Observe(seconds(gap_s));
}

void Metrics::on_prompt_done(const RequestOutput& output) {
  RequestSeries& to = series_->requests;
  const auto prompt = static_cast<double>(output.prompt_token_ids.size());
  const double cached = output.num_cached_tokens;
  to.prompt_tokens.Increment(prompt);
  to.computed_tokens.Increment(seconds(prompt - cached));
  for (Counter* counter : {&to.found_tokens, &to.cached_tokens, &to.cached_device_tokens})
    counter->Increment(cached);
  to.queue_wait.Observe(seconds(output.metrics.queued_s()));
  const RequestMetrics& metrics = output.metrics;
  if (metrics.first_token_ts != 0)
    to.first_token.Observe(seconds(metrics.first_token_ts - metrics.arrival_ts));
}

// Times of those that gave a token; a request that was cut off before has none to speak of.
void Metrics::on_finish(const RequestOutput& output) {
  RequestSeries& to = series_->requests;
  const RequestMetrics& metrics = output.metrics;
  to.success[static_cast<size_t>(reason_of(output))]->Increment();
  size_t longest = 0;
  for (const CompletionOutput& choice : output.outputs)
    longest = std::max(longest, choice.token_ids.size());
  const auto prompt = static_cast<double>(output.prompt_token_ids.size());
  to.num_prompt.Observe(prompt);
  to.num_computed.Observe(seconds(prompt - output.num_cached_tokens));
  to.num_generated.Observe(metrics.num_generation_tokens);
  to.max_generated.Observe(static_cast<double>(longest));
  if (!output.outputs.empty()) to.params_n.Observe(static_cast<double>(output.outputs.size()));
  if (metrics.max_tokens > 0) to.params_max_tokens.Observe(metrics.max_tokens);
  to.num_preemptions.Observe(metrics.num_preemptions);
  if (metrics.last_token_ts == 0) return;
  to.e2e.Observe(seconds(metrics.last_token_ts - metrics.arrival_ts));
  to.queue.Observe(seconds(metrics.queued_s()));
  to.inference.Observe(seconds(metrics.last_token_ts - metrics.scheduled_ts));
  to.prefill.Observe(seconds(metrics.prefill_s()));
  to.decode.Observe(seconds(metrics.decode_s()));
  if (longest > 1)
    to.time_per_token.Observe(seconds(metrics.decode_s()) / static_cast<double>(longest - 1));
}

void Metrics::on_rejection(std::string_view reason) { series_->rejections.count(reason); }

void Metrics::on_http(std::string_view route, int status, double duration_s) {
  series_->http.count(route, status, seconds(duration_s));
}

// --- steps ----------------------------------------------------------------------------------

namespace {

void count(SpeculationSeries& to, const StepReport& report) {
  const SpeculatorStats& stats = *report.speculation;
  raise_to(to.drafts, stats.num_drafts);
  raise_to(to.draft_tokens, stats.num_draft_tokens);
  raise_to(to.accepted_tokens, stats.num_accepted_tokens);
  for (size_t i = 0; i < to.accepted_per_pos.size(); ++i)
    raise_to(*to.accepted_per_pos[i], stats.num_accepted_tokens_per_pos[i]);
  to.draft_seconds.Increment(seconds(report.draft_s));
  if (report.step->work.draft_tokens > 0) to.verify_seconds.Increment(seconds(report.forward_s));
}

void show(SpeculationSeries& to, const DraftBlocks& all, double bytes_per_block) {
  const std::array blocks{all.free, all.all - all.free - all.cached, all.cached};
  for (size_t i = 0; i < blocks.size(); ++i)
    if (to.draft_bytes[i]) to.draft_bytes[i]->Set(blocks[i] * bytes_per_block);
}

}  // namespace

void Metrics::on_step(const StepReport& report) {
  EngineSeries& to = series_->engine;
  const Step& step = *report.step;
  const auto kind = static_cast<size_t>(kind_of(step));
  const std::array parts{report.plan_s, report.forward_s, report.draw_s, report.commit_s};
  double total_s = seconds(report.draft_s);
  for (size_t i = 0; i < parts.size(); ++i) {
    to.part_seconds[kind][i]->Increment(seconds(parts[i]));
    total_s += seconds(parts[i]);
  }
  to.steps[kind]->Increment();
  to.step_seconds[kind]->Observe(total_s);
  // As vLLM counts: whole prompts, found tokens included, in the step that ends them, and what was
  // generated; a step without either is none of its iterations.
  if (const int tokens = report.num_prompt_tokens + report.num_tokens; tokens > 0)
    to.iteration_tokens.Observe(tokens);
  series_->requests.generation_tokens.Increment(report.num_tokens);
  if (series_->speculation && report.speculation) count(*series_->speculation, report);
  on_state(*report.scheduler, report.speculation);
}

void Metrics::on_state(const Scheduler& scheduler, const SpeculatorStats* speculation) {
  if (series_->speculation && speculation)
    show(*series_->speculation, speculation->blocks, series_->draft_bytes_per_block);
  const SchedulerStats stats = scheduler.stats();
  const int held = stats.num_blocks - stats.num_free_blocks - stats.num_cached_blocks;
  EngineSeries& to = series_->engine;
  to.running.Set(stats.num_running);
  to.waiting.Set(stats.num_waiting);
  to.waiting_capacity.Set(stats.num_waiting);
  to.kv_usage.now.Set(ratio(held, stats.num_blocks));
  to.kv_usage.old.Set(ratio(held, stats.num_blocks));
  const std::array blocks{stats.num_free_blocks, held, stats.num_cached_blocks};
  for (size_t i = 0; i < blocks.size(); ++i) {
    to.blocks[i]->Set(blocks[i]);
    to.bytes[i]->Set(blocks[i] * series_->bytes_per_block);
  }
  to.reserved_tokens.Set(static_cast<double>(stats.reserved_tokens));
  to.stored_tokens.Set(static_cast<double>(stats.stored_tokens));
  to.wasted_ratio.Set(ratio(stats.reserved_tokens - stats.stored_tokens, stats.reserved_tokens));
  to.step_model_error.Set(stats.step_model_error);
  raise_to(to.preemptions, stats.num_preemptions);
  raise_to(to.recomputed_tokens, stats.recomputed_tokens);

  const PrefixStats& prefix = scheduler.prefix_tree().stats();
  to.tree_blocks.Set(scheduler.prefix_tree().num_nodes());
  // A prompt's last token is never looked for, and vLLM counts it.
  raise_to(to.prefix_queries, prefix.prompts.tokens + prefix.prompts.lookups);
  raise_to(to.prefix_hits, prefix.prompts.hit_tokens);
  raise_to(to.evicted_blocks, prefix.evicted_blocks);
  for (size_t i = 0; i < to.misses.size(); ++i)
    if (to.misses[i]) raise_to(*to.misses[i], prefix.misses[i]);
}

// --- text -----------------------------------------------------------------------------------

std::string Metrics::text(const Gauges& gauges) {
  series_->server.set(gauges, process_stats());
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, series_->registry.Collect());
  return std::move(out).str();
}

}  // namespace octavo
