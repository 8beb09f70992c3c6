#include <fmt/format.h>

#include <algorithm>

#include "bench/answer.h"
#include "bench/markup.h"
#include "bench/report_parts.h"
#include "bench/svg_bars.h"
#include "bench/svg_plot.h"

namespace octavo {
namespace {

// Lowest and highest of the rounds; nothing where the figure is none.
std::optional<PlotRange> range_of(const RunResult& run, const ComparisonRow& row) {
  const std::vector<double> rounds = round_values(run, row.figure.name);
  if (rounds.empty()) return {};
  const auto [low, high] = std::ranges::minmax(rounds);
  return PlotRange{run.x.value_or(0), low, high};
}

std::string title_of(const Figure& figure) {
  const bool has_unit = !figure.unit.empty() && figure.unit != "share";
  return figure.label + (has_unit ? ", " + figure.unit : "");
}

std::string bars(const BenchResult& result, const ComparisonRow& row) {
  std::vector<PlotBar> out;
  for (size_t i = 0; i < result.runs.size(); ++i) {
    const auto range = range_of(result.runs[i], row);
    out.push_back({.name = result.runs[i].name,
                   .text = format_value(row.values[i], row.figure.unit),
                   .value = row.values[i].value_or(0),
                   .low = range ? range->low : 0,
                   .high = range ? range->high : 0});
  }
  return bar_plot(title_of(row.figure), out);
}

// The figure over the values of a sweep, a line for each technique.
std::string lines(const BenchResult& result, const ComparisonRow& row) {
  std::vector<PlotSeries> series;
  std::vector<double> ticks;
  for (size_t i = 0; i < result.runs.size(); ++i) {
    const RunResult& run = result.runs[i];
    auto line = std::ranges::find(series, run.series, &PlotSeries::name);
    if (line == series.end()) line = series.insert(line, PlotSeries{run.series, {}});
    if (std::ranges::find(ticks, *run.x) == ticks.end()) ticks.push_back(*run.x);
    if (row.values[i]) line->points.push_back({*run.x, *row.values[i]});
    if (const auto range = range_of(run, row)) line->ranges.push_back(*range);
  }
  for (PlotSeries& line : series) std::ranges::stable_sort(line.points, {}, &PlotPoint::x);
  return line_plot({.title = title_of(row.figure),
                    .x = result.x_label,
                    .y = "",
                    .log_x = true,
                    .log_y = true,
                    .x_ticks = ticks},
                   series);
}

bool is_sweep(const BenchResult& result) {
  return result.runs.size() > 2 &&
         std::ranges::all_of(result.runs, [](const RunResult& run) { return run.x.has_value(); });
}

}  // namespace

std::string answer_section(const BenchResult& result, const ComparisonRows& rows) {
  std::string sentences, plots;
  for (const std::string& answer : answers(result, rows))
    sentences += fmt::format("<p>{}</p>\n", escape_markup(answer));
  for (const ComparisonRow* row : headline_rows(result, rows)) {
    if (result.runs.size() < 2) continue;
    const std::string plot = is_sweep(result) ? lines(result, *row) : bars(result, *row);
    if (!plot.empty()) plots += fmt::format("<div class=\"panel\">{}</div>\n", plot);
  }
  if (sentences.empty()) return "";
  return fmt::format("<section class=\"card answer\">{}{}</section>\n", sentences,
                     plots.empty() ? "" : fmt::format("<div class=\"panels\">\n{}</div>\n", plots));
}

}  // namespace octavo
