// Counts and times of the server and its engine, as Prometheus reads them, under vLLM's names and
// our own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/engine_core.h"
#include "engine/outputs.h"

namespace octavo {

struct MetricsOptions {
  std::string model_name;
  int max_model_len = 0;
  // Labels of vllm:cache_config_info: name, value.
  std::vector<std::pair<std::string, std::string>> cache_config = {};
  int64_t bytes_per_block = 0;
  int64_t draft_bytes_per_block = 0;  // of a draft model; 0: there is none
  std::string isa = {};               // instruction set of the kernels
  int num_speculative_tokens = 0;     // guessed at a time, at most; 0: none ever
};

// All functions may be called from any thread at once, and take microseconds at most.
class Metrics {
 public:
  explicit Metrics(MetricsOptions options);
  ~Metrics();

  // A choice gained tokens in a step, `gap_s` after the step before that gave it some.
  void on_inter_token(double gap_s);
  // As RequestEvents::on_prompt_done has it: the first token is there.
  void on_prompt_done(const RequestOutput& output);
  void on_finish(const RequestOutput& output);
  // A request that was refused before the engine saw it: "max_queue_len", "max_queue_wait",
  // "request_memory", "draining", "loading"; any other is counted as "other".
  void on_rejection(std::string_view reason);
  // route: as it is registered, never what a client wrote.
  void on_http(std::string_view route, int status, double seconds);
  void on_step(const StepReport& report);  // on the engine's thread
  // Who runs, who waits and what they hold; on the engine's thread. Part of on_step(). To be called
  // before the first step and when nothing is left to do: requests may end without a step.
  // speculation: nullptr if nothing is guessed.
  void on_state(const Scheduler& scheduler, const SpeculatorStats* speculation = nullptr);
  void on_state(const EngineCore& core) {
    on_state(core.scheduler(), core.speculator() ? &core.speculator()->stats() : nullptr);
  }

  // Set when they are read: these change without an event.
  struct Gauges {
    double heartbeat_age_s = 0;  // since the engine's thread last showed that it runs
    int num_connections = 0;
    int num_open_requests = 0;
    int max_queue_len = 0;
    size_t request_memory_bytes = 0;      // reserved by requests that are read and answered
    size_t max_request_memory_bytes = 0;  // of which they may reserve
    int64_t num_dropped_log_lines = 0;
  };
  // Text format 0.0.4.
  std::string text(const Gauges& gauges);

 private:
  struct Series;
  std::unique_ptr<Series> series_;
};

}  // namespace octavo
