#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/figures.h"
#include "bench/load_over_time.h"
#include "bench/report_parts.h"
#include "bench/svg_block_map.h"
#include "bench/svg_plot.h"

namespace octavo {
namespace {

// Plots beside each other; nothing without any.
std::string plots_section(std::string_view title, const std::vector<std::string>& plots) {
  std::string out;
  for (const std::string& plot : plots)
    if (!plot.empty()) out += fmt::format("<div class=\"card\">{}</div>\n", plot);
  if (out.empty()) return "";
  return fmt::format("<section><h2>{}</h2><div class=\"plots\">\n{}</div></section>\n", title, out);
}

// Throughput against one latency, in milliseconds.
std::string tradeoff(const BenchResult& result, std::string_view label,
                     Summary RunFigures::*latency, double Summary::*value) {
  if (result.runs.size() < 2) return "";
  std::vector<PlotDot> dots;
  for (const RunResult& run : result.runs) {
    const RunFigures figures = figures_of(run);
    const Summary& summary = figures.*latency;
    dots.push_back({run.name, figures.output_throughput,
                    summary.count > 0 ? summary.*value * 1e3 : std::nan("")});
  }
  if (std::ranges::none_of(dots, [](const PlotDot& dot) { return dot.y > 0; })) return "";
  return scatter_plot({.title = fmt::format("Throughput against {}", label),
                       .x = "output tokens per second",
                       .y = "ms",
                       .log_y = true},
                      dots);
}

std::vector<double> ttfts_ms(const RunResult& run) {
  std::vector<double> out;
  for (const RequestRecord& request : run.requests)
    if (request.completed() && !request.token_s.empty())
      out.push_back((request.token_s.front() - request.arrival_s) * 1e3);
  return out;
}

std::vector<double> itls_ms(const RunResult& run) {
  std::vector<double> out;
  for (const RequestRecord& request : run.requests)
    for (size_t i = 1; i < request.token_s.size() && request.completed(); ++i)
      out.push_back((request.token_s[i] - request.token_s[i - 1]) * 1e3);
  return out;
}

std::string distribution(const BenchResult& result, const std::string& title,
                         std::vector<double> (*values)(const RunResult&)) {
  std::vector<PlotValues> series;
  double most = 0;
  for (const RunResult& run : result.runs) {
    series.push_back({run.name, values(run)});
    for (const double value : series.back().values) most = std::max(most, value);
  }
  if (most == 0) return "";
  return cdf_plot({.title = title, .x = "ms", .y = "% at or below", .log_x = true}, series);
}

std::string over_time(const BenchResult& result, const std::string& title, int StepSample::*value) {
  std::vector<PlotSeries> series;
  double most = 0;
  for (const RunResult& run : result.runs) {
    PlotSeries& line = series.emplace_back(PlotSeries{run.name, {}});
    for (const StepSample& step : run.steps) {
      line.points.push_back({step.time_s, static_cast<double>(step.*value)});
      most = std::max(most, line.points.back().y);
    }
  }
  if (most == 0) return "";
  return line_plot({.title = title, .x = "seconds", .y = ""}, series, /*steps=*/true);
}

std::string load_over_time(const BenchResult& result, const std::string& title,
                           std::vector<LoadPoint> (*load)(const RunResult&)) {
  std::vector<PlotSeries> series;
  for (const RunResult& run : result.runs) {
    PlotSeries& line = series.emplace_back(PlotSeries{run.name, {}});
    // Where there are steps, they say it better.
    if (!run.steps.empty()) continue;
    for (const LoadPoint& point : load(run)) line.points.push_back({point.time_s, point.value});
  }
  const bool none = std::ranges::all_of(series, [](auto& line) { return line.points.empty(); });
  return none ? "" : line_plot({.title = title, .x = "seconds", .y = ""}, series, /*steps=*/true);
}

std::string server_over_time(const BenchResult& result, const std::string& title,
                             std::optional<double> ServerSample::*value, double scale = 1) {
  std::vector<PlotSeries> series;
  bool any = false;
  for (const RunResult& run : result.runs) {
    PlotSeries& line = series.emplace_back(PlotSeries{run.name, {}});
    for (const ServerSample& sample : run.server) {
      if (!(sample.*value)) continue;
      line.points.push_back({sample.time_s, *(sample.*value) * scale});
      any |= *(sample.*value) > 0;
    }
  }
  return any ? line_plot({.title = title, .x = "seconds", .y = ""}, series) : "";
}

constexpr std::string_view kMapKeys =
    "<p class=\"keys\"><span><i class=\"key c1\"></i><i class=\"key c2\"></i><i class=\"key "
    "c3\"></i>"
    "held, a colour for each request</span><span><i class=\"key c1\" style=\"opacity:.25\"></i>"
    "held, nothing stored yet</span><span><i class=\"key shared\"></i>held by several</span>"
    "<span><i class=\"key cached\"></i>cached</span><span><i class=\"key "
    "free\"></i>free</span></p>";

}  // namespace

std::string blocks_section(const BenchResult& result) {
  std::string maps;
  for (const RunResult& run : result.runs)
    if (const std::string map = svg_block_map(run.name, run.block_map); !map.empty())
      maps += fmt::format("<div class=\"card\">{}</div>\n", map);
  if (maps.empty()) return "";
  return fmt::format(
      "<section><h2>Blocks of the KV cache</h2>{}\n<p class=\"keys\">From left to right: the "
      "blocks "
      "of the pool. From top to bottom: time.</p><div class=\"maps\">\n{}</div></section>\n",
      kMapKeys, maps);
}

std::string all_plots(const BenchResult& result) {
  // Each run of such a sweep is one request alone, of which its lines say all.
  if (has_lines(result)) return "";
  return plots_section(
             "Throughput and latency",
             {tradeoff(result, "P95 of the whole answer", &RunFigures::e2el_s, &Summary::p95),
              tradeoff(result, "P95 of the time to the first token", &RunFigures::ttft_s,
                       &Summary::p95)}) +
         plots_section("Distributions",
                       {distribution(result, "Time to first token (TTFT)", ttfts_ms),
                        distribution(result, "Time between tokens (ITL)", itls_ms)}) +
         plots_section("Over time",
                       {over_time(result, "Sequences running", &StepSample::running),
                        over_time(result, "Requests waiting", &StepSample::waiting),
                        over_time(result, "Blocks held", &StepSample::blocks_held),
                        over_time(result, "Blocks cached", &StepSample::blocks_cached),
                        load_over_time(result, "Requests in flight", in_flight),
                        load_over_time(result, "Output tokens per second", tokens_per_second)}) +
         plots_section(
             "What the server said",
             {server_over_time(result, "KV cache in use, %", &ServerSample::kv_usage, 100),
              server_over_time(result, "Resident memory, MiB", &ServerSample::memory_mib),
              server_over_time(result, "Cores busy", &ServerSample::cpu_cores),
              server_over_time(result, "Requests running", &ServerSample::running),
              server_over_time(result, "Requests waiting", &ServerSample::waiting)});
}

}  // namespace octavo
