#include "bench/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "bench/goodput.h"
#include "bench/load_over_time.h"

namespace octavo {
namespace {

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

double span_of_requests(const RunResult& run) {
  double first = INFINITY, last = 0;
  for (const RequestRecord& request : run.requests) {
    first = std::min(first, request.arrival_s);
    last = std::max(last, request.end_s);
  }
  return run.requests.empty() ? 0 : last - first;
}

struct Latencies {
  std::vector<double> queue, ttft, tpot, itl, e2el;

  void add(const RequestRecord& request) {
    if (request.scheduled_s) queue.push_back(*request.scheduled_s - request.arrival_s);
    if (request.token_s.empty()) return;
    ttft.push_back(request.ttft_s());
    e2el.push_back(request.e2el_s());
    for (size_t i = 1; i < request.token_s.size(); ++i)
      itl.push_back(request.token_s[i] - request.token_s[i - 1]);
    if (const auto per_token = request.tpot_s()) tpot.push_back(*per_token);
  }
};

void set_latencies(const RunResult& run, RunFigures& figures) {
  Latencies latencies;
  for (const RequestRecord& request : run.requests)
    if (request.completed()) latencies.add(request);
  figures.queue_s = summarize(std::move(latencies.queue));
  figures.ttft_s = summarize(std::move(latencies.ttft));
  figures.tpot_s = summarize(std::move(latencies.tpot));
  figures.itl_s = summarize(std::move(latencies.itl));
  figures.e2el_s = summarize(std::move(latencies.e2el));
}

// Who is first in the queue is what priorities are for.
void set_urgent(const RunResult& run, RunFigures& figures) {
  const auto [lowest, highest] =
      std::ranges::minmax_element(run.requests, {}, &RequestRecord::priority);
  if (lowest == run.requests.end() || lowest->priority == highest->priority) return;
  std::vector<double> ttft;
  for (const RequestRecord& request : run.requests)
    if (request.completed() && request.priority == lowest->priority && !request.token_s.empty())
      ttft.push_back(request.ttft_s());
  if (!ttft.empty()) figures.urgent_ttft_s = summarize(std::move(ttft));
}

void count_requests(const RunResult& run, RunFigures& figures) {
  int64_t cached = 0, prompts = 0, good = 0;
  for (const RequestRecord& request : run.requests) {
    figures.preemptions += request.preemptions;
    cached += request.cached_tokens;
    prompts += request.prompt_tokens;
    ++(request.completed()  ? figures.completed
       : request.rejected() ? figures.rejected
                            : figures.failed);
    if (!request.completed()) continue;
    good += is_good(request, run.goodput_ms);
    figures.total_input_tokens += request.prompt_tokens;
    figures.total_output_tokens += request.output_tokens();
  }
  if (prompts > 0)
    figures.prefix_hit_rate = static_cast<double>(cached) / static_cast<double>(prompts);
  if (!run.goodput_ms.empty()) figures.good = good;
}

void set_throughput(const RunResult& run, RunFigures& figures) {
  figures.duration_s = span_of_requests(run);
  const auto output = static_cast<double>(figures.total_output_tokens);
  const auto total = output + static_cast<double>(figures.total_input_tokens);
  figures.request_throughput = share(figures.completed, figures.duration_s);
  if (figures.good)
    figures.request_goodput = share(static_cast<double>(*figures.good), figures.duration_s);
  figures.output_throughput = share(output, figures.duration_s);
  figures.total_token_throughput = share(total, figures.duration_s);
}

// Steps weigh as much as they took; without times, all the same.
class StepMeans {
 public:
  explicit StepMeans(const std::vector<StepSample>& steps) : steps_(steps) {
    for (const StepSample& step : steps) seconds_ += step.step_s;
  }

  template <class Value>
  double mean(Value value) const {
    double sum = 0, weights = 0;
    for (const StepSample& step : steps_) {
      const double weight = seconds_ > 0 ? step.step_s : 1;
      sum += weight * static_cast<double>(value(step));
      weights += weight;
    }
    return sum / weights;
  }

  template <class Value>
  double sum(Value value) const {
    double sum = 0;
    for (const StepSample& step : steps_) sum += static_cast<double>(value(step));
    return sum;
  }

  double seconds() const { return seconds_; }

 private:
  const std::vector<StepSample>& steps_;
  double seconds_ = 0;
};

int computed_tokens(const StepSample& step) {
  return step.prefill_tokens + step.decode_tokens + step.padding_tokens;
}

void set_shares(const RunResult& run, const StepMeans& steps, RunFigures& figures) {
  const double reserved = *figures.blocks_used_mean * run.block_size;
  if (reserved > 0)
    figures.kv_waste_share = steps.mean([](auto& s) { return s.waste_tokens; }) / reserved;
  const double computed = steps.sum(computed_tokens);
  if (computed > 0)
    figures.padding_share = steps.sum([](auto& s) { return s.padding_tokens; }) / computed;
  if (steps.seconds() > 0)
    figures.scheduling_share = steps.sum([](auto& s) { return s.scheduling_s; }) / steps.seconds();
}

void set_steps(const RunResult& run, RunFigures& figures) {
  if (run.steps.empty()) return;
  const StepMeans steps(run.steps);
  figures.running_mean = steps.mean([](auto& s) { return s.running; });
  figures.running_max = std::ranges::max(run.steps, {}, &StepSample::running).running;
  if (run.num_blocks == 0) return;
  figures.blocks_used_mean = steps.mean([](auto& s) { return s.blocks_held; });
  figures.blocks_used_max = std::ranges::max(run.steps, {}, &StepSample::blocks_held).blocks_held;
  set_shares(run, steps, figures);
}

// Of the samples that have the value.
std::optional<Summary> summary_of(const std::vector<ServerSample>& samples,
                                  std::optional<double> ServerSample::*value) {
  std::vector<double> values;
  for (const ServerSample& sample : samples)
    if (sample.*value) values.push_back(*(sample.*value));
  return values.empty() ? std::nullopt : std::optional(summarize(std::move(values)));
}

// Samples are denser at the start of a run, so each weighs as long as it stood.
std::optional<Summary> summary_over_time(const std::vector<ServerSample>& samples,
                                         std::optional<double> ServerSample::*value) {
  std::optional<Summary> summary = summary_of(samples, value);
  const ServerSample* last = nullptr;
  double sum = 0, seconds = 0;
  for (const ServerSample& sample : samples) {
    if (!(sample.*value)) continue;
    const double passed_s = last ? sample.time_s - last->time_s : 0;
    if (last) sum += passed_s * (*(sample.*value) + *(last->*value)) / 2;
    seconds += passed_s;
    last = &sample;
  }
  if (summary && seconds > 0) summary->mean = sum / seconds;
  return summary;
}

void set_load(const RunResult& run, RunFigures& figures) {
  const std::vector<LoadPoint> flight = in_flight(run);
  double requests_s = 0;
  for (size_t i = 0; i < flight.size(); ++i) {
    figures.max_concurrent = std::max(figures.max_concurrent, static_cast<int>(flight[i].value));
    if (i + 1 < flight.size())
      requests_s += flight[i].value * (flight[i + 1].time_s - flight[i].time_s);
  }
  figures.mean_concurrent = share(requests_s, figures.duration_s);
  for (const LoadPoint& second : tokens_per_second(run))
    figures.max_output_tokens_per_s = std::max(figures.max_output_tokens_per_s, second.value);
  figures.server_kv_usage = summary_over_time(run.server, &ServerSample::kv_usage);
  figures.server_memory_mib = summary_of(run.server, &ServerSample::memory_mib);
  figures.server_cpu_cores = summary_of(run.server, &ServerSample::cpu_cores);
}

void set_costs(double cost_per_hour, RunFigures& figures) {
  const double cost = cost_per_hour / 3600 * figures.duration_s;
  const auto output = static_cast<double>(figures.total_output_tokens);
  const double total = output + static_cast<double>(figures.total_input_tokens);
  if (output > 0) figures.cost_per_million_output_tokens = cost / output * 1e6;
  if (total > 0) figures.cost_per_million_tokens = cost / total * 1e6;
}

using List = std::vector<Figure>;

void add(List& list, std::string name, std::string label, std::string unit, Better better,
         std::optional<double> value) {
  list.push_back({std::move(name), std::move(label), std::move(unit), better, true, value});
}

// Shares are shown as per cent and written as they are.
void add_share(List& list, std::string name, std::string label, Better better,
               std::optional<double> value) {
  add(list, std::move(name), std::move(label), "share", better, value);
}

struct Part {
  std::string_view name, label;
  double Summary::*value;
  bool in_tables;  // of gaps between tokens, the largest too
};

constexpr std::array kParts = {
    Part{"mean", "mean", &Summary::mean, false},    Part{"median", "P50", &Summary::p50, true},
    Part{"std", "deviation", &Summary::std, false}, Part{"min", "min", &Summary::min, false},
    Part{"p50", "P50", &Summary::p50, false},       Part{"p90", "P90", &Summary::p90, false},
    Part{"p95", "P95", &Summary::p95, true},        Part{"p99", "P99", &Summary::p99, true},
    Part{"max", "max", &Summary::max, false},
};

void add_summary(List& list, std::string_view name, std::string_view label,
                 const Summary& summary) {
  for (const Part& part : kParts) {
    add(list, fmt::format("{}_{}_ms", part.name, name), fmt::format("{} {}", label, part.label),
        "ms", Better::lower,
        summary.count > 0 ? std::optional(summary.*part.value * 1e3) : std::nullopt);
    list.back().in_tables = part.in_tables || list.back().name == "max_itl_ms";
  }
}

void add_totals(List& list, const RunFigures& f) {
  add(list, "completed", "requests completed", "", Better::neither, f.completed);
  add(list, "failed", "requests failed", "", Better::lower, f.failed);
  add(list, "rejected", "requests turned away (429)", "", Better::neither, f.rejected);
  add(list, "total_input_tokens", "prompt tokens", "", Better::neither,
      static_cast<double>(f.total_input_tokens));
  add(list, "total_output_tokens", "output tokens", "", Better::neither,
      static_cast<double>(f.total_output_tokens));
  add(list, "duration", "duration", "s", Better::lower, f.duration_s);
  add(list, "request_throughput", "requests per second", "", Better::higher, f.request_throughput);
  add(list, "request_goodput", "good requests per second", "", Better::higher, f.request_goodput);
  add(list, "output_throughput", "output tokens per second", "", Better::higher,
      f.output_throughput);
  add(list, "total_token_throughput", "all tokens per second", "", Better::higher,
      f.total_token_throughput);
}

void add_latencies(List& list, const RunFigures& f) {
  add_summary(list, "queue", "wait in queue", f.queue_s);
  add_summary(list, "ttft", "TTFT", f.ttft_s);
  add_summary(list, "tpot", "TPOT", f.tpot_s);
  add_summary(list, "itl", "ITL", f.itl_s);
  add_summary(list, "e2el", "whole answer", f.e2el_s);
  add_summary(list, "urgent_ttft", "TTFT of the most urgent", f.urgent_ttft_s.value_or(Summary()));
}

void add_gaps(List& list, const RunFigures& f) {
  const auto ms = [&](double StreamGaps::*value) {
    return f.gaps ? std::optional((*f.gaps).*value * 1e3) : std::nullopt;
  };
  add(list, "median_gap_before_ms", "usual gap of a stream", "ms", Better::lower,
      ms(&StreamGaps::median_gap_s));
  add(list, "p99_gap_ms", "gap beside the long prompt, P99", "ms", Better::lower,
      ms(&StreamGaps::p99_gap_s));
  add(list, "max_gap_ms", "largest gap beside the long prompt", "ms", Better::lower,
      ms(&StreamGaps::largest_gap_s));
  add(list, "long_ttft_ms", "TTFT of the long prompt", "ms", Better::lower,
      ms(&StreamGaps::ttft_s));
}

void add_memory(List& list, const RunFigures& f) {
  const auto real = [](std::optional<int> value) {
    return value ? std::optional<double>(*value) : std::nullopt;
  };
  add(list, "mean_running", "running at once, mean", "", Better::neither, f.running_mean);
  add(list, "max_running", "running at once, max", "", Better::neither, real(f.running_max));
  add(list, "mean_blocks_used", "blocks used, mean", "", Better::neither, f.blocks_used_mean);
  add(list, "max_blocks_used", "blocks used, max", "", Better::neither, real(f.blocks_used_max));
  add_share(list, "kv_waste_share", "KV reserved but empty", Better::lower, f.kv_waste_share);
  add_share(list, "prefix_hit_rate", "prompt tokens found in the cache", Better::higher,
            f.prefix_hit_rate);
  add_share(list, "padding_share", "computed as padding", Better::lower, f.padding_share);
  add(list, "preemptions", "preemptions", "", Better::lower, static_cast<double>(f.preemptions));
  add_share(list, "scheduling_share", "time for scheduling", Better::lower, f.scheduling_share);
}

// Told by what came and went, of a run without steps.
void add_load(List& list, const RunFigures& f) {
  const bool in_tables = !f.running_max;
  add(list, "mean_concurrent_requests", "requests at once, mean", "", Better::neither,
      f.mean_concurrent);
  list.back().in_tables = in_tables;
  add(list, "max_concurrent_requests", "requests at once, max", "", Better::neither,
      f.max_concurrent);
  list.back().in_tables = in_tables;
  add(list, "max_output_tokens_per_s", "output tokens in the best second", "", Better::higher,
      f.max_output_tokens_per_s);
  list.back().in_tables = in_tables;
}

void add_server(List& list, const RunFigures& f) {
  const auto part = [](const std::optional<Summary>& summary, double Summary::*value) {
    return summary ? std::optional((*summary).*value) : std::nullopt;
  };
  add_share(list, "server_mean_kv_usage", "KV cache in use, mean", Better::neither,
            part(f.server_kv_usage, &Summary::mean));
  add_share(list, "server_max_kv_usage", "KV cache in use, max", Better::neither,
            part(f.server_kv_usage, &Summary::max));
  add(list, "server_max_memory_mib", "memory of the server, max", "MiB", Better::lower,
      part(f.server_memory_mib, &Summary::max));
  add(list, "server_mean_cpu_cores", "cores busy in the server, mean", "", Better::neither,
      part(f.server_cpu_cores, &Summary::mean));
}

void add_costs(List& list, const RunFigures& f) {
  add(list, "cost_per_million_output_tokens", "cost per million output tokens", "", Better::lower,
      f.cost_per_million_output_tokens);
  add(list, "cost_per_million_tokens", "cost per million tokens", "", Better::lower,
      f.cost_per_million_tokens);
}

}  // namespace

RunFigures figures_of(const RunResult& run, std::optional<double> cost_per_hour) {
  RunFigures figures;
  count_requests(run, figures);
  set_throughput(run, figures);
  set_latencies(run, figures);
  set_urgent(run, figures);
  figures.gaps = gaps_of(run);
  set_steps(run, figures);
  set_load(run, figures);
  if (cost_per_hour) set_costs(*cost_per_hour, figures);
  return figures;
}

std::vector<Figure> list_figures(const RunFigures& figures) {
  List list;
  add_totals(list, figures);
  add_latencies(list, figures);
  add_gaps(list, figures);
  add_memory(list, figures);
  add_load(list, figures);
  add_server(list, figures);
  add_costs(list, figures);
  return list;
}

std::map<std::string, int> failures_of(const RunResult& run) {
  std::map<std::string, int> kinds;
  for (const RequestRecord& request : run.requests)
    if (!request.completed()) ++kinds[request.finish_reason];
  return kinds;
}

FigureValues values_of(const List& figures) {
  FigureValues values;
  for (const Figure& figure : figures)
    if (figure.value) values[figure.name] = *figure.value;
  return values;
}

FigureValues figure_values(const RunResult& run) {
  return values_of(list_figures(figures_of(run)));
}

std::string format_value(std::optional<double> value, std::string_view unit) {
  if (!value) return "-";
  if (unit == "share") return fmt::format("{:.3g} %", *value * 100);
  if (std::abs(*value) >= 1000) return fmt::format("{:.0f}", *value);
  return fmt::format("{:.4g}", *value);
}

std::string format_ratio(std::optional<double> ratio) {
  if (!ratio) return "-";
  return *ratio >= 100 ? fmt::format("{:.0f} x", *ratio) : fmt::format("{:.3g} x", *ratio);
}

std::string with_unit(std::optional<double> value, const Figure& figure) {
  const bool has_unit = value && !figure.unit.empty() && figure.unit != "share";
  return format_value(value, figure.unit) + (has_unit ? " " + figure.unit : "");
}

}  // namespace octavo
