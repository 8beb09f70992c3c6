#include "bench/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/version.h"
#include "bench/figures.h"
#include "bench/html_style.h"
#include "bench/load_over_time.h"
#include "bench/markup.h"
#include "bench/svg_block_map.h"
#include "bench/svg_plot.h"

namespace octavo {
namespace {

using Settings = std::map<std::string, std::string>;

std::string settings_text(const Settings& settings) {
  std::string out;
  for (const auto& [name, value] : settings)
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, value);
  return escape_markup(out);
}

// A row of what was run; nothing if there is nothing to say.
std::string fact(std::string_view name, const std::string& escaped) {
  return escaped.empty() ? "" : fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, escaped);
}

std::string cost_text(const BenchResult& result) {
  return result.cost_per_hour ? format_value(*result.cost_per_hour, "") + " an hour" : "";
}

std::string header(const BenchResult& result) {
  std::string notes;
  for (const std::string& note : result.notes)
    notes += fmt::format("<p>{}</p>\n", escape_markup(note));
  const std::string command = escape_markup(result.command);
  return fmt::format(
      "<header><p class=\"kicker\">Octavo "
      "benchmark</p><h1>{}</h1>\n<dl>{}{}{}{}{}</dl>\n{}</header>"
      "\n",
      escape_markup(result.title), fact("Model", escape_markup(result.model)),
      fact("Machine", escape_markup(result.machine)),
      fact("Settings", settings_text(result.settings)), fact("Cost", cost_text(result)),
      fact("Command", command.empty() ? "" : fmt::format("<code>{}</code>", command)), notes);
}

const ComparisonRow* find_row(const std::vector<ComparisonRow>& rows, std::string_view name) {
  const auto it = std::ranges::find_if(rows, [&](auto& row) { return row.figure.name == name; });
  return it == rows.end() ? nullptr : &*it;
}

std::string_view verdict(Better better, std::optional<double> ratio) {
  if (!ratio || better == Better::neither || std::abs(*ratio - 1) < 0.005) return "";
  return (*ratio > 1) == (better == Better::higher) ? " good" : " bad";
}

std::string tile(const ComparisonRow& row) {
  const double ratio = *row.ratios[1];
  return fmt::format("<div class=\"card tile\"><b class=\"{}\">{}{}</b><span>{}</span></div>\n",
                     verdict(row.figure.better, ratio),
                     format_ratio(ratio < 0.9 ? 1 / ratio : ratio), ratio < 0.9 ? " less" : "",
                     escape_markup(row.figure.label));
}

// Of one technique beside its baseline: what matters most, in large letters.
std::string tiles(const std::vector<ComparisonRow>& rows, size_t num_runs) {
  if (num_runs != 2) return "";
  std::string out;
  for (const std::string_view name :
       {"output_throughput", "p95_ttft_ms", "max_itl_ms", "p95_e2el_ms", "max_running"})
    if (const ComparisonRow* row = find_row(rows, name); row && row->ratios[1].value_or(0) > 0)
      out += tile(*row);
  return fmt::format("<div class=\"tiles\">{}</div>\n", out);
}

std::string key(size_t index, const std::string& name) {
  return fmt::format("<i class=\"key c{}\"></i>{}", index % kPlotColours, escape_markup(name));
}

std::string table_head(const BenchResult& result) {
  std::string out = "<th></th>";
  for (size_t i = 0; i < result.runs.size(); ++i)
    out += fmt::format("<th>{}</th>{}", key(i, result.runs[i].name),
                       i > 0 ? "<th class=\"ratio\">ratio</th>" : "");
  return out;
}

std::string table_row(const ComparisonRow& row) {
  const bool has_unit = !row.figure.unit.empty() && row.figure.unit != "share";
  std::string out = fmt::format("<td>{}{}</td>", escape_markup(row.figure.label),
                                has_unit ? ", " + row.figure.unit : "");
  for (size_t i = 0; i < row.values.size(); ++i) {
    out += fmt::format("<td>{}</td>", format_value(row.values[i], row.figure.unit));
    if (i > 0)
      out += fmt::format("<td class=\"ratio{}\">{}</td>", verdict(row.figure.better, row.ratios[i]),
                         format_ratio(row.ratios[i]));
  }
  return fmt::format("<tr>{}</tr>\n", out);
}

std::string figures_section(const BenchResult& result, const std::vector<ComparisonRow>& rows) {
  std::string body;
  for (const ComparisonRow& row : rows) body += table_row(row);
  return fmt::format(
      "<section><h2>Figures</h2><div class=\"card scroll\"><table><thead><tr>{}</tr></thead>\n"
      "<tbody>{}</tbody></table></div></section>\n",
      table_head(result), body);
}

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
  std::vector<PlotDot> dots;
  for (const RunResult& run : result.runs) {
    const RunFigures figures = figures_of(run);
    const Summary& summary = figures.*latency;
    dots.push_back({run.name, figures.output_throughput,
                    summary.count > 0 ? summary.*value * 1e3 : std::nan("")});
  }
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
  for (const RunResult& run : result.runs) series.push_back({run.name, values(run)});
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
    for (const ServerSample& sample : run.server)
      if (sample.*value) line.points.push_back({sample.time_s, *(sample.*value) * scale});
    any |= !line.points.empty();
  }
  return any ? line_plot({.title = title, .x = "seconds", .y = ""}, series) : "";
}

std::string failures_section(const BenchResult& result) {
  std::string body;
  for (size_t i = 0; i < result.runs.size(); ++i)
    for (const auto& [kind, count] : failures_of(result.runs[i]))
      body += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escape_markup(kind),
                          key(i, result.runs[i].name), count);
  if (body.empty()) return "";
  return fmt::format(
      "<section><h2>Requests that failed</h2><div class=\"card scroll\"><table><thead><tr>"
      "<th>how</th><th>run</th><th>requests</th></tr></thead>\n<tbody>{}</tbody></table></div>"
      "</section>\n",
      body);
}

constexpr std::string_view kMapKeys =
    "<p class=\"keys\"><span><i class=\"key c1\"></i><i class=\"key c2\"></i><i class=\"key "
    "c3\"></i>"
    "held, a colour for each request</span><span><i class=\"key c1\" style=\"opacity:.25\"></i>"
    "held, nothing stored yet</span><span><i class=\"key shared\"></i>held by several</span>"
    "<span><i class=\"key cached\"></i>cached</span><span><i class=\"key "
    "free\"></i>free</span></p>";

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

std::string settings_section(const BenchResult& result) {
  std::set<std::string> names;
  for (const RunResult& run : result.runs)
    for (const auto& [name, value] : run.settings) names.insert(name);
  if (names.empty()) return "";
  std::string head = "<th></th>", body;
  for (size_t i = 0; i < result.runs.size(); ++i)
    head += fmt::format("<th>{}</th>", key(i, result.runs[i].name));
  for (const std::string& name : names) {
    body += fmt::format("<tr><td>{}</td>", escape_markup(name));
    for (const RunResult& run : result.runs) {
      const auto it = run.settings.find(name);
      body += fmt::format("<td>{}</td>", it == run.settings.end() ? "" : escape_markup(it->second));
    }
    body += "</tr>\n";
  }
  return fmt::format(
      "<section><h2>Settings of each run</h2><div class=\"card scroll\"><table><thead><tr>{}</tr>"
      "</thead>\n<tbody>{}</tbody></table></div></section>\n",
      head, body);
}

std::string all_plots(const BenchResult& result) {
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

}  // namespace

std::string html_report(const BenchResult& result) {
  const std::vector<ComparisonRow> rows = compare_runs(result);
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<title>{}</title><style>{}</style></head>\n<body><main>\n{}{}{}{}{}{}{}"
      "<footer>Ratios are to the first run. Octavo {}, {}.</footer>\n</main></body></html>\n",
      escape_markup(result.title), kReportStyle, header(result), tiles(rows, result.runs.size()),
      figures_section(result, rows), failures_section(result), all_plots(result),
      blocks_section(result), settings_section(result), escape_markup(version()),
      escape_markup(commit()));
}

}  // namespace octavo
