// Every series that /metrics shows, made at the start so that each is there with 0. Names, help and
// buckets are here and nowhere else.
//
// Names that begin with vllm: mean what vLLM means by them. Under two names there is what its
// dashboards of different ages ask for.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kv/prefix_stats.h"
#include "server/metric_buckets.h"
#include "server/metrics.h"
#include "server/process_stats.h"

namespace octavo {

// Registers series; each has the labels of its model and engine.
class SeriesMaker {
 public:
  using Labels = std::map<std::string, std::string>;

  SeriesMaker(prometheus::Registry& registry, Labels common)
      : registry_(registry), common_(std::move(common)) {}

  prometheus::Counter& counter(const std::string& name, const std::string& help,
                               Labels labels = {}) const;
  prometheus::Gauge& gauge(const std::string& name, const std::string& help,
                           Labels labels = {}) const;
  prometheus::Histogram& histogram(const std::string& name, const std::string& help,
                                   const buckets::Boundaries& boundaries, Labels labels = {}) const;

 private:
  Labels all(Labels labels) const;

  prometheus::Registry& registry_;
  Labels common_;
};

// Raises a counter to a count that only ever grows. One thread at a time.
void raise_to(prometheus::Counter& counter, double count);

// One value under an old name and a new one.
template <class T>
struct Twin {
  T& now;
  T& old;
};

enum class StepKind : uint8_t { prefill, decode, mixed };
inline constexpr int kNumStepKinds = 3;

class RequestSeries {
 public:
  RequestSeries(const SeriesMaker& make, int max_model_len);

  prometheus::Counter &prompt_tokens, &computed_tokens, &found_tokens, &cached_tokens,
      &cached_device_tokens;
  prometheus::Counter& generation_tokens;
  std::array<prometheus::Counter*, 4> success;  // by FinishReason
  prometheus::Histogram& first_token;
  Twin<prometheus::Histogram> inter_token;
  prometheus::Histogram& time_per_token;
  prometheus::Histogram &e2e, &queue, &inference, &prefill, &decode;
  prometheus::Histogram& queue_wait;
  prometheus::Histogram &num_prompt, &num_generated, &max_generated, &params_max_tokens,
      &num_computed;
  prometheus::Histogram &params_n, &num_preemptions;
};

class EngineSeries {
 public:
  explicit EngineSeries(const SeriesMaker& make);

  prometheus::Gauge &running, &waiting, &waiting_capacity;
  Twin<prometheus::Gauge> kv_usage;
  Twin<prometheus::Counter> prefix_queries, prefix_hits;
  prometheus::Counter& preemptions;
  prometheus::Histogram& iteration_tokens;

  prometheus::Gauge &wasted_ratio, &reserved_tokens, &stored_tokens;
  prometheus::Gauge& tree_blocks;
  std::array<prometheus::Gauge*, 3> blocks, bytes;             // free, held, cached
  std::array<prometheus::Counter*, kNumMissReasons> misses{};  // nullptr: no miss
  prometheus::Counter &evicted_blocks, &recomputed_tokens;
  prometheus::Gauge& step_model_error;
  std::array<prometheus::Counter*, kNumStepKinds> steps;
  std::array<prometheus::Histogram*, kNumStepKinds> step_seconds;
  // [kind][plan, forward, draw, commit]
  std::array<std::array<prometheus::Counter*, 4>, kNumStepKinds> part_seconds;
};

// Only where tokens are guessed: made with the first step's counts at 0.
class SpeculationSeries {
 public:
  SpeculationSeries(const SeriesMaker& make, int num_speculative_tokens, bool has_draft_model);

  prometheus::Counter &drafts, &draft_tokens, &accepted_tokens;
  std::vector<prometheus::Counter*> accepted_per_pos;
  prometheus::Counter &draft_seconds, &verify_seconds;
  std::array<prometheus::Gauge*, 3> draft_bytes{};  // free, held, cached; nullptr: no draft model
};

class ServerSeries {
 public:
  // process: without labels, for the names that every exporter has.
  ServerSeries(const SeriesMaker& make, const SeriesMaker& process);

  void set(const Metrics::Gauges& gauges, const ProcessStats& stats);

 private:
  prometheus::Gauge &heartbeat_age_, &connections_, &open_requests_, &max_queue_len_;
  prometheus::Gauge &request_memory_, &max_request_memory_;
  prometheus::Gauge &resident_, &virtual_memory_, &anonymous_, &swapped_, &start_time_,
      &open_files_, &max_open_files_, &threads_;
  std::mutex mutex_;  // of these: two readers may find different ones
  prometheus::Counter &dropped_log_lines_, &cpu_seconds_;
};

class RejectionSeries {
 public:
  explicit RejectionSeries(const SeriesMaker& make);
  void count(std::string_view reason);  // any other than those it begins with is "other"

 private:
  std::map<std::string, prometheus::Counter*, std::less<>> by_reason_, by_limit_;
};

// Their labels are known when they come. Any thread.
class HttpSeries {
 public:
  explicit HttpSeries(const SeriesMaker& make);
  void count(std::string_view route, int status, double seconds);

 private:
  prometheus::Counter& requests(const std::string& route, const std::string& status) const;
  prometheus::Histogram& durations(const std::string& route) const;
  std::string bounded(std::string_view route);

  SeriesMaker make_;
  std::mutex mutex_;
  std::set<std::string, std::less<>> routes_;  // at most kMaxRoutes; all others are "other"
};

}  // namespace octavo
