#include "bench/compare_runs.h"

#include <algorithm>
#include <array>

#include "bench/median.h"

namespace octavo {
namespace {

constexpr std::array<std::string_view, 8> kMainFigures = {
    "output_throughput", "median_ttft_ms", "p95_ttft_ms",  "p95_tpot_ms",
    "p99_itl_ms",        "p95_e2el_ms",    "mean_running", "max_blocks_used"};
constexpr std::array<std::string_view, 4> kGapFigures = {"median_gap_before_ms", "p99_gap_ms",
                                                         "max_gap_ms", "long_ttft_ms"};

using Rounds = std::vector<FigureValues>;

Rounds rounds_of(const RunResult& run) {
  return run.rounds.empty() ? Rounds{figure_values(run)} : run.rounds;
}

// Of the rounds, of which the shown run is one; some figures are of no round.
std::optional<double> median_of(const RunResult& run, const Figure& shown) {
  std::vector<double> values;
  for (const FigureValues& round : run.rounds)
    if (const auto it = round.find(shown.name); it != round.end()) values.push_back(it->second);
  return values.empty() ? shown.value : std::optional(median(std::move(values)));
}

// Ratios within each round that has the figure on both sides.
std::optional<Change> change_between(const Rounds& base, const Rounds& other,
                                     const std::string& name) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(base.size(), other.size()); ++i) {
    const auto of_base = base[i].find(name), of_other = other[i].find(name);
    if (of_base == base[i].end() || of_other == other[i].end()) continue;
    if (of_base->second > 0 && of_other->second > 0)
      ratios.push_back(of_other->second / of_base->second);
  }
  return ratios.empty() ? std::nullopt : std::optional(change_of(ratios));
}

}  // namespace

bool has_lines(const BenchResult& result) {
  return std::ranges::any_of(
      result.runs, [&](const RunResult& run) { return run.series != result.runs[0].series; });
}

size_t baseline_of(const BenchResult& result, size_t run) {
  const std::string& group = result.runs[run].group;
  if (group.empty()) return 0;
  const auto first = std::ranges::find(result.runs, group, &RunResult::group);
  return static_cast<size_t>(first - result.runs.begin());
}

RunResult merge_rounds(std::vector<RunResult> rounds) {
  std::vector<FigureValues> figures;
  std::vector<std::pair<double, size_t>> order;
  for (const RunResult& round : rounds) {
    figures.push_back(figure_values(round));
    order.emplace_back(figures.back()["output_throughput"], order.size());
  }
  std::ranges::sort(order);
  RunResult run = std::move(rounds[order[(order.size() - 1) / 2].second]);
  run.rounds = std::move(figures);
  return run;
}

std::optional<Change> change_between_runs(const BenchResult& result, size_t base, size_t other,
                                          const std::string& name) {
  return change_between(rounds_of(result.runs[base]), rounds_of(result.runs[other]), name);
}

std::vector<double> round_values(const RunResult& run, const std::string& name) {
  std::vector<double> values;
  for (const FigureValues& round : rounds_of(run))
    if (const auto it = round.find(name); it != round.end()) values.push_back(it->second);
  return values;
}

std::vector<ComparisonRow> compare_runs(const BenchResult& result) {
  std::vector<ComparisonRow> rows;
  std::vector<Rounds> rounds;
  for (const RunResult& run : result.runs) {
    const std::vector<Figure> figures = list_figures(figures_of(run, result.cost_per_hour));
    rounds.push_back(run.rounds.empty() ? Rounds{values_of(figures)} : run.rounds);
    rows.resize(figures.size());
    for (size_t i = 0; i < figures.size(); ++i) {
      if (rows[i].values.empty()) rows[i].figure = figures[i];
      const size_t base = baseline_of(result, rounds.size() - 1);
      rows[i].values.push_back(median_of(run, figures[i]));
      rows[i].changes.push_back(change_between(rounds[base], rounds.back(), figures[i].name));
    }
  }
  // Where all runs have zero failures, preemptions or padding, there is nothing to compare.
  std::erase_if(rows, [](const ComparisonRow& row) {
    const bool tells_by_zero =
        row.figure.name == "request_goodput" || row.figure.name == "completed";
    return !row.figure.in_tables || std::ranges::none_of(row.values, [&](auto& value) {
      return value && (tells_by_zero || *value != 0);
    });
  });
  return rows;
}

std::vector<const ComparisonRow*> main_rows(const BenchResult& result,
                                            const std::vector<ComparisonRow>& rows) {
  const bool has_gaps = std::ranges::any_of(
      result.runs, [](const RunResult& run) { return run.long_request.has_value(); });
  std::vector<std::string_view> names(result.headline.begin(), result.headline.end());
  if (has_gaps)
    names.insert(names.end(), kGapFigures.begin(), kGapFigures.end());
  else
    names.insert(names.end(), kMainFigures.begin(), kMainFigures.end());
  std::vector<const ComparisonRow*> out;
  for (const std::string_view name : names) {
    const ComparisonRow* row = find_row(rows, name);
    if (row && std::ranges::find(out, row) == out.end()) out.push_back(row);
  }
  return out;
}

const ComparisonRow* find_row(const std::vector<ComparisonRow>& rows, std::string_view name) {
  const auto it = std::ranges::find_if(rows, [&](auto& row) { return row.figure.name == name; });
  return it == rows.end() ? nullptr : &*it;
}

}  // namespace octavo
