#include "server/metric_series.h"

#include <utility>

namespace octavo {
namespace {

using prometheus::Counter;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr size_t kMaxRoutes = 48;

Counter* finished(const SeriesMaker& make, FinishReason reason) {
  return &make.counter("vllm:request_success_total", "Requests that ended, by reason.",
                       {{"finished_reason", std::string(name(reason))}});
}

Gauge* blocks_in(const SeriesMaker& make, const std::string& state) {
  return &make.gauge("octavo:kv_blocks",
                     "KV blocks. cached: held by the prefix tree alone, free when wanted.",
                     {{"state", state}});
}

Gauge* bytes_in(const SeriesMaker& make, const std::string& state) {
  return &make.gauge("octavo:kv_bytes", "Bytes of the KV blocks.", {{"state", state}});
}

Counter* missed(const SeriesMaker& make, const std::string& reason) {
  return &make.counter("octavo:prefix_misses_total",
                       "Prompts of which the prefix cache did not have all that it could have, by "
                       "the reason for the first block that was missing.",
                       {{"reason", reason}});
}

Counter* steps_of(const SeriesMaker& make, const std::string& kind) {
  return &make.counter("octavo:steps_total",
                       "Steps of the engine: of prompts, of answers, or of both.",
                       {{"kind", kind}});
}

Histogram* step_seconds_of(const SeriesMaker& make, const std::string& kind) {
  return &make.histogram("octavo:step_seconds", "Seconds of a step.", buckets::step(),
                         {{"kind", kind}});
}

std::array<Counter*, 4> parts_of(const SeriesMaker& make, const std::string& kind) {
  const auto part = [&](const std::string& name) {
    return &make.counter("octavo:step_part_seconds_total", "Seconds in the parts of steps.",
                         {{"kind", kind}, {"part", name}});
  };
  return {part("plan"), part("forward"), part("draw"), part("commit")};
}

Histogram& request_seconds(const SeriesMaker& make, const std::string& name,
                           const std::string& help) {
  return make.histogram(name, help, buckets::request());
}

}  // namespace

void raise_to(Counter& counter, double count) {
  if (const double gain = count - counter.Value(); gain > 0) counter.Increment(gain);
}

// --- SeriesMaker ----------------------------------------------------------------------------

SeriesMaker::Labels SeriesMaker::all(Labels labels) const {
  labels.insert(common_.begin(), common_.end());
  return labels;
}

Counter& SeriesMaker::counter(const std::string& name, const std::string& help,
                              Labels labels) const {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry_).Add(
      all(std::move(labels)));
}

Gauge& SeriesMaker::gauge(const std::string& name, const std::string& help, Labels labels) const {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry_).Add(
      all(std::move(labels)));
}

Histogram& SeriesMaker::histogram(const std::string& name, const std::string& help,
                                  const buckets::Boundaries& boundaries, Labels labels) const {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry_).Add(
      all(std::move(labels)), boundaries);
}

// --- requests -------------------------------------------------------------------------------

RequestSeries::RequestSeries(const SeriesMaker& make, int max_model_len)
    : prompt_tokens(make.counter("vllm:prompt_tokens_total", "Tokens of prompts.")),
      computed_tokens(make.counter("vllm:prompt_tokens_by_source_total",
                                   "Tokens of prompts by where their K and V came from.",
                                   {{"source", "local_compute"}})),
      found_tokens(make.counter("vllm:prompt_tokens_by_source_total",
                                "Tokens of prompts by where their K and V came from.",
                                {{"source", "local_cache_hit"}})),
      cached_tokens(make.counter("vllm:prompt_tokens_cached_total",
                                 "Tokens of prompts found in the prefix cache.")),
      cached_device_tokens(make.counter("vllm:prompt_tokens_cached_by_source_total",
                                        "Tokens of prompts found in the prefix cache, by tier.",
                                        {{"source", "device"}})),
      generation_tokens(make.counter("vllm:generation_tokens_total", "Tokens of answers.")),
      success{finished(make, FinishReason::stop), finished(make, FinishReason::length),
              finished(make, FinishReason::abort), finished(make, FinishReason::error)},
      first_token(make.histogram("vllm:time_to_first_token_seconds",
                                 "Seconds from arrival to the first token.",
                                 buckets::first_token())),
      inter_token{
          make.histogram("vllm:inter_token_latency_seconds",
                         "Seconds between two steps that gave an answer tokens.",
                         buckets::inter_token()),
          make.histogram("vllm:time_per_output_token_seconds",
                         "Old name of inter_token_latency_seconds.", buckets::inter_token())},
      time_per_token(make.histogram("vllm:request_time_per_output_token_seconds",
                                    "Mean seconds of a token after the first, of each request.",
                                    buckets::inter_token())),
      e2e(request_seconds(make, "vllm:e2e_request_latency_seconds",
                          "Seconds from arrival to the last token.")),
      queue(request_seconds(make, "vllm:request_queue_time_seconds",
                            "Seconds from arrival to the first step.")),
      inference(request_seconds(make, "vllm:request_inference_time_seconds",
                                "Seconds from the first step to the last token.")),
      prefill(request_seconds(make, "vllm:request_prefill_time_seconds",
                              "Seconds from the first step to the first token.")),
      decode(request_seconds(make, "vllm:request_decode_time_seconds",
                             "Seconds from the first token to the last.")),
      queue_wait(make.histogram("octavo:queue_wait_seconds",
                                "Seconds from arrival to the first step, known with the first "
                                "token and not only at the end.",
                                buckets::first_token())),
      num_prompt(make.histogram("vllm:request_prompt_tokens", "Tokens of the prompt.",
                                buckets::tokens_up_to(max_model_len))),
      num_generated(make.histogram("vllm:request_generation_tokens", "Tokens of all answers.",
                                   buckets::tokens_up_to(max_model_len))),
      max_generated(make.histogram("vllm:request_max_num_generation_tokens",
                                   "Tokens of the longest answer.",
                                   buckets::tokens_up_to(max_model_len))),
      params_max_tokens(make.histogram("vllm:request_params_max_tokens",
                                       "max_tokens that was asked for, else what the context left.",
                                       buckets::tokens_up_to(max_model_len))),
      num_computed(make.histogram("vllm:request_prefill_kv_computed_tokens",
                                  "Tokens of the prompt that were not in the prefix cache.",
                                  buckets::tokens_up_to(max_model_len))),
      params_n(make.histogram("vllm:request_params_n", "Answers that were asked for.",
                              buckets::choices())),
      num_preemptions(make.histogram("vllm:request_num_preemptions",
                                     "How often the request lost its place.",
                                     buckets::preemptions())) {
  make.counter("vllm:prompt_tokens_by_source_total",
               "Tokens of prompts by where their K and V came from.",
               {{"source", "external_kv_transfer"}});  // always 0 here
}

// --- engine ---------------------------------------------------------------------------------

EngineSeries::EngineSeries(const SeriesMaker& make)
    : running(make.gauge("vllm:num_requests_running", "Sequences that run.")),
      waiting(make.gauge("vllm:num_requests_waiting", "Sequences that wait.")),
      waiting_capacity(make.gauge("vllm:num_requests_waiting_by_reason", "Sequences that wait.",
                                  {{"reason", "capacity"}})),
      kv_usage{make.gauge("vllm:kv_cache_usage_perc",
                          "Share of the KV blocks that sequences hold, 0 to 1."),
               make.gauge("vllm:gpu_cache_usage_perc", "Old name of kv_cache_usage_perc.")},
      prefix_queries{
          make.counter("vllm:prefix_cache_queries_total",
                       "Tokens of prompts that were looked for in the prefix cache."),
          make.counter("vllm:gpu_prefix_cache_queries_total", "Old name of prefix_cache_queries.")},
      prefix_hits{
          make.counter("vllm:prefix_cache_hits_total", "Tokens that the prefix cache had."),
          make.counter("vllm:gpu_prefix_cache_hits_total", "Old name of prefix_cache_hits.")},
      preemptions(make.counter("vllm:num_preemptions_total",
                               "Times a sequence had to give its blocks to others.")),
      iteration_tokens(
          make.histogram("vllm:iteration_tokens_total",
                         "Tokens of prompts that a step ended, and tokens that it generated.",
                         buckets::iteration_tokens())),
      wasted_ratio(make.gauge("octavo:kv_wasted_ratio",
                              "Share of the positions in held blocks that no token is in.")),
      reserved_tokens(
          make.gauge("octavo:kv_reserved_tokens", "Positions in blocks of running sequences.")),
      stored_tokens(make.gauge("octavo:kv_stored_tokens", "Of these, with K and V in them.")),
      tree_blocks(make.gauge("octavo:prefix_tree_blocks",
                             "Blocks that can be found again by their tokens.")),
      blocks{blocks_in(make, "free"), blocks_in(make, "held"), blocks_in(make, "cached")},
      bytes{bytes_in(make, "free"), bytes_in(make, "held"), bytes_in(make, "cached")},
      evicted_blocks(make.counter("octavo:evicted_blocks_total",
                                  "Blocks of the prefix tree that had to go for others.")),
      recomputed_tokens(make.counter("octavo:recomputed_tokens_total",
                                     "Tokens computed again after a preemption.")),
      step_model_error(make.gauge("octavo:step_model_error_ratio",
                                  "Error of predicted step times, relative to the measured; a "
                                  "moving mean.")),
      steps{steps_of(make, "prefill"), steps_of(make, "decode"), steps_of(make, "mixed")},
      step_seconds{step_seconds_of(make, "prefill"), step_seconds_of(make, "decode"),
                   step_seconds_of(make, "mixed")},
      part_seconds{parts_of(make, "prefill"), parts_of(make, "decode"), parts_of(make, "mixed")} {
  // One that is always there, 0 here: no sequence is held back for another reason.
  make.gauge("vllm:num_requests_waiting_by_reason", "Sequences that wait.",
             {{"reason", "deferred"}});
  misses[static_cast<size_t>(MissReason::not_seen)] = missed(make, "not_seen");
  misses[static_cast<size_t>(MissReason::evicted)] = missed(make, "evicted");
  misses[static_cast<size_t>(MissReason::skipped)] = missed(make, "skipped");
}

// --- guesses --------------------------------------------------------------------------------

SpeculationSeries::SpeculationSeries(const SeriesMaker& make, int num_speculative_tokens,
                                     bool has_draft_model)
    : drafts(make.counter("vllm:spec_decode_num_drafts_total", "Guesses that were verified.")),
      draft_tokens(
          make.counter("vllm:spec_decode_num_draft_tokens_total", "Tokens of these guesses.")),
      accepted_tokens(
          make.counter("vllm:spec_decode_num_accepted_tokens_total", "Of these, that came true.")),
      draft_seconds(
          make.counter("octavo:spec_decode_draft_seconds_total", "Seconds of making guesses.")),
      verify_seconds(make.counter("octavo:spec_decode_verify_seconds_total",
                                  "Seconds of the forwards that verified guesses, all else that "
                                  "they computed included.")) {
  for (int i = 0; i < num_speculative_tokens; ++i)
    accepted_per_pos.push_back(&make.counter("vllm:spec_decode_num_accepted_tokens_per_pos_total",
                                             "Tokens that came true, by their place in the guess.",
                                             {{"position", std::to_string(i)}}));
  if (!has_draft_model) return;
  for (size_t i = 0; i < draft_bytes.size(); ++i)
    draft_bytes[i] = &make.gauge("octavo:draft_kv_bytes", "Bytes of the draft model's KV blocks.",
                                 {{"state", std::array{"free", "held", "cached"}[i]}});
}

// --- server ---------------------------------------------------------------------------------

ServerSeries::ServerSeries(const SeriesMaker& make, const SeriesMaker& process)
    : heartbeat_age_(make.gauge("octavo:heartbeat_age_seconds",
                                "Seconds since the engine's thread showed that it runs.")),
      connections_(make.gauge("octavo:http_connections", "Connections that are open.")),
      open_requests_(make.gauge("octavo:open_requests", "Requests that are not finished.")),
      max_queue_len_(make.gauge("octavo:max_queue_len", "Requests that may be open.")),
      request_memory_(make.gauge("octavo:request_memory_bytes",
                                 "Memory reserved by requests, their bodies included.")),
      max_request_memory_(
          make.gauge("octavo:max_request_memory_bytes", "That they may reserve together.")),
      resident_(process.gauge("process_resident_memory_bytes", "Memory in use.")),
      virtual_memory_(process.gauge("process_virtual_memory_bytes", "Address space in use.")),
      anonymous_(make.gauge("octavo:process_anonymous_memory_bytes",
                            "Memory in use that is backed by no file.")),
      swapped_(make.gauge("octavo:process_swapped_memory_bytes", "Memory that was swapped out.")),
      start_time_(process.gauge("process_start_time_seconds", "When the process started.")),
      open_files_(process.gauge("process_open_fds", "Open files and sockets.")),
      max_open_files_(process.gauge("process_max_fds", "Most there may be.")),
      threads_(make.gauge("octavo:process_threads", "Threads.")),
      dropped_log_lines_(make.counter("octavo:log_lines_dropped_total",
                                      "Lines of the log that nobody read in time.")),
      cpu_seconds_(process.counter("process_cpu_seconds_total", "CPU time of all threads.")) {}

void ServerSeries::set(const Metrics::Gauges& gauges, const ProcessStats& stats) {
  heartbeat_age_.Set(gauges.heartbeat_age_s);
  connections_.Set(gauges.num_connections);
  open_requests_.Set(gauges.num_open_requests);
  max_queue_len_.Set(gauges.max_queue_len);
  request_memory_.Set(static_cast<double>(gauges.request_memory_bytes));
  max_request_memory_.Set(static_cast<double>(gauges.max_request_memory_bytes));
  resident_.Set(static_cast<double>(stats.resident_bytes));
  virtual_memory_.Set(static_cast<double>(stats.virtual_bytes));
  anonymous_.Set(static_cast<double>(stats.anonymous_bytes));
  swapped_.Set(static_cast<double>(stats.swapped_bytes));
  start_time_.Set(stats.start_time_s);
  open_files_.Set(static_cast<double>(stats.num_open_files));
  max_open_files_.Set(static_cast<double>(stats.max_open_files));
  threads_.Set(stats.num_threads);
  const std::lock_guard lock(mutex_);
  raise_to(cpu_seconds_, stats.cpu_s);
  raise_to(dropped_log_lines_, static_cast<double>(gauges.num_dropped_log_lines));
}

RejectionSeries::RejectionSeries(const SeriesMaker& make) {
  for (const char* reason :
       {"max_queue_len", "max_queue_wait", "request_memory", "draining", "loading", "other"})
    by_reason_.emplace(reason,
                       &make.counter("octavo:rejections_total",
                                     "Requests refused before the engine saw them, by reason.",
                                     {{"reason", reason}}));
  // vLLM's name for our max_queue_len comes first; it has no limit in seconds.
  for (const auto& [reason, label] : {std::pair("max_queue_len", "max_num_queued_reqs"),
                                      std::pair("max_queue_wait", "max_queue_wait")})
    by_limit_.emplace(
        reason, &make.counter("vllm:admission_rejections_total",
                              "Requests refused for a limit of the queue.", {{"reason", label}}));
}

void RejectionSeries::count(std::string_view reason) {
  const auto found = by_reason_.find(reason);
  (found == by_reason_.end() ? by_reason_.find("other") : found)->second->Increment();
  if (const auto limit = by_limit_.find(reason); limit != by_limit_.end())
    limit->second->Increment();
}

HttpSeries::HttpSeries(const SeriesMaker& make) : make_(make) {
  for (const char* route : {"/v1/chat/completions", "/v1/completions"}) {
    routes_.emplace(route);
    durations(route);
    for (const char* status : {"200", "400", "429", "500", "503"}) requests(route, status);
  }
}

void HttpSeries::count(std::string_view route, int status, double seconds) {
  const std::string name = bounded(route);
  requests(name, status >= 100 && status <= 599 ? std::to_string(status) : "other").Increment();
  durations(name).Observe(seconds);
}

Counter& HttpSeries::requests(const std::string& route, const std::string& status) const {
  return make_.counter("http_requests_total", "Requests that were answered.",
                       {{"handler", route}, {"status", status}});
}

Histogram& HttpSeries::durations(const std::string& route) const {
  return make_.histogram("http_request_duration_seconds",
                         "Seconds from a request to the end of its answer.", buckets::http(),
                         {{"handler", route}});
}

std::string HttpSeries::bounded(std::string_view route) {
  const std::lock_guard lock(mutex_);
  if (routes_.contains(route)) return std::string(route);
  if (routes_.size() >= kMaxRoutes) return "other";
  return *routes_.emplace(route).first;
}

}  // namespace octavo
