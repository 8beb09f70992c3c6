#include "bench/server_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "bench/prometheus_text.h"

namespace octavo {
namespace {

constexpr double kSoonestS = 0.02, kEveryS = 1;
constexpr double kTimeoutS = 5;

std::optional<double> first_of(std::string_view text,
                               std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    if (const auto value = metric_sum(text, name); value && *value >= 0) return value;
  return std::nullopt;
}

ServerSample read_sample(std::string_view text, double time_s) {
  ServerSample sample;
  sample.time_s = time_s;
  sample.running = first_of(text, {"vllm:num_requests_running", "llamacpp:requests_processing"});
  sample.waiting = first_of(text, {"vllm:num_requests_waiting", "llamacpp:requests_deferred"});
  sample.kv_usage = first_of(text, {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc",
                                    "llamacpp:kv_cache_usage_ratio"});
  if (const auto bytes = first_of(text, {"process_resident_memory_bytes"}))
    sample.memory_mib = *bytes / (1 << 20);
  return sample;
}

bool says_something(const ServerSample& sample) {
  return sample.running || sample.waiting || sample.kv_usage || sample.memory_mib;
}

}  // namespace

void ServerSampler::start() {
  start_s_ = client_.now_s();
  repeat();
}

void ServerSampler::finish(std::function<void()> done) {
  is_over_ = true;
  ask(std::move(done));
}

void ServerSampler::repeat() {
  if (is_over_ || is_missing_) return;
  // How long the load lasts is not known: what is short is looked at often.
  const double now_s = client_.now_s();
  const double next_s = now_s + std::clamp((now_s - start_s_) / 3, kSoonestS, kEveryS);
  // If the server was slow to answer, what was missed is not made up for.
  ask([this, next_s] { client_.at(next_s, [this] { repeat(); }); });
}

void ServerSampler::ask(std::function<void()> then) {
  if (is_missing_) return then();
  http::Call call = {.method = "GET", .path = "/metrics", .headers = headers_};
  call.timeout_s = kTimeoutS;
  client_.send(std::move(call), {},
               [this, then = std::move(then)](const http::CallResult& result, double time_s) {
                 hear(result, time_s);
                 then();
               });
}

void ServerSampler::hear(const http::CallResult& result, double time_s) {
  if (result.end != http::CallEnd::answered) return;
  ServerSample sample = read_sample(result.status == 200 ? result.body : "", time_s);
  if (const auto cpu_s = metric_sum(result.body, "process_cpu_seconds_total")) {
    const double passed_s = time_s - last_cpu_time_s_;
    // Not of moments: such a counter moves in steps of ten milliseconds.
    if (last_cpu_s_ >= 0 && passed_s > kEveryS / 2)
      sample.cpu_cores = std::max(0.0, (*cpu_s - last_cpu_s_) / passed_s);
    if (last_cpu_s_ < 0 || sample.cpu_cores) {
      last_cpu_s_ = *cpu_s;
      last_cpu_time_s_ = time_s;
    }
  }
  is_known_ |= says_something(sample);
  is_missing_ = !is_known_;
  if (is_known_) samples_.push_back(sample);
}

std::string ServerSampler::note() const {
  const bool few = samples_.size() < 5;
  if (is_known_ && few)
    return fmt::format(
        "The run was so short that the server's metrics were read {} times only: its largest "
        "values may have been missed.",
        samples_.size());
  if (is_known_) return "";
  return "The server has no /metrics that are known: its KV cache, memory and CPU are not shown.";
}

}  // namespace octavo
