#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "bench/figures.h"
#include "bench/markup.h"
#include "bench/report_parts.h"
#include "bench/svg_parts.h"

namespace octavo {
namespace {

constexpr size_t kRunsAcross = 3;  // beside each other there is room for so many

std::string label_of(const Figure& figure) {
  const bool has_unit = !figure.unit.empty() && figure.unit != "share";
  return escape_markup(figure.label) + (has_unit ? ", " + figure.unit : "");
}

std::string table(const std::string& head, const std::string& body) {
  return fmt::format(
      "<div class=\"card "
      "scroll\"><table><thead><tr>{}</tr></thead>\n<tbody>{}</tbody></table></div>",
      head, body);
}

std::string value_cell(const ComparisonRow& row, size_t run) {
  return fmt::format("<td>{}</td>", format_value(row.values[run], row.figure.unit));
}

// What the ratio of the rounds was, for who points at it.
std::string ratio_cell(const ComparisonRow& row, size_t run) {
  const auto& change = row.changes[run];
  if (!change) return "<td class=\"ratio\">-</td>";
  return fmt::format("<td class=\"ratio{}\" title=\"{}\">{}</td>",
                     verdict(row.figure.better, change), escape_markup(change_text(*change)),
                     change->call == Call::noise ? "~ 1" : ratio_text(change->ratio));
}

std::string figures_across(const BenchResult& result, const ComparisonRows& rows) {
  std::string head = "<th></th>", body;
  for (size_t i = 0; i < result.runs.size(); ++i)
    head += fmt::format("<th>{}</th>{}", run_key(i, result.runs[i].name),
                        i > 0 ? "<th class=\"ratio\">ratio</th>" : "");
  for (const ComparisonRow& row : rows) {
    body += fmt::format("<tr><td>{}</td>", label_of(row.figure));
    for (size_t i = 0; i < row.values.size(); ++i)
      body += value_cell(row, i) + (i > 0 ? ratio_cell(row, i) : "");
    body += "</tr>\n";
  }
  return table(head, body);
}

// Each run a row, with the figures that matter most and how the first of them compares.
std::string runs_down(const BenchResult& result, const ComparisonRows& rows) {
  const std::vector<const ComparisonRow*> shown = main_rows(result, rows);
  std::string head = fmt::format("<th>{}</th>", escape_markup(result.x_label)), body;
  for (const ComparisonRow* row : shown)
    head += fmt::format("<th>{}</th>{}", label_of(row->figure),
                        row == shown.front() ? "<th class=\"ratio\">ratio</th>" : "");
  for (size_t i = 0; i < result.runs.size(); ++i) {
    body += fmt::format("<tr><td>{}</td>", run_key(i, result.runs[i].name));
    for (const ComparisonRow* row : shown)
      body += value_cell(*row, i) + (row == shown.front() ? ratio_cell(*row, i) : "");
    body += "</tr>\n";
  }
  return table(head, body);
}

// Of a sweep with a line for each technique: each value a row.
std::string lines_down(const BenchResult& result, const ComparisonRow& row) {
  std::string head = fmt::format("<th>{}</th>", escape_markup(result.x_label)), body;
  std::vector<std::string> series;
  std::map<double, std::string> cells;
  for (size_t i = 0; i < result.runs.size(); ++i) {
    const RunResult& run = result.runs[i];
    std::string& out = cells[run.x.value_or(0)];
    const bool is_base = baseline_of(result, i) == i;
    out += value_cell(row, i) + (is_base ? "" : ratio_cell(row, i));
    if (!is_base && row.changes[i])
      out += fmt::format("<td>{} to {}</td><td>{}</td>", ratio_text(row.changes[i]->low),
                         ratio_text(row.changes[i]->high), row.changes[i]->rounds);
    if (std::ranges::find(series, run.series) != series.end()) continue;
    head += fmt::format("<th>{}</th>{}", run_key(series.size(), run.series),
                        is_base ? ""
                                : "<th class=\"ratio\">ratio</th><th>of the rounds</th>"
                                  "<th>rounds</th>");
    series.push_back(run.series);
  }
  for (const auto& [x, text] : cells) body += fmt::format("<tr><td>{:g}</td>{}</tr>\n", x, text);
  return table(head, body);
}

std::string all_figures(const BenchResult& result, const ComparisonRows& rows) {
  std::string head = "<th></th>", body;
  for (size_t i = 0; i < result.runs.size(); ++i)
    head += fmt::format("<th>{}</th>", run_key(i, result.runs[i].name));
  for (const ComparisonRow& row : rows) {
    body += fmt::format("<tr><td>{}</td>", label_of(row.figure));
    for (size_t i = 0; i < row.values.size(); ++i) body += value_cell(row, i);
    body += "</tr>\n";
  }
  return fmt::format("<details><summary>All figures</summary>{}</details>", table(head, body));
}

std::string section(std::string_view title, const std::string& inside) {
  return fmt::format("<section><h2>{}</h2>{}</section>\n", title, inside);
}

std::string setting_of(const RunResult& run, const std::string& name) {
  const auto it = run.settings.find(name);
  return it == run.settings.end() ? "" : escape_markup(it->second);
}

bool differs(const BenchResult& result, const std::string& name) {
  return std::ranges::any_of(result.runs, [&](const RunResult& run) {
    return setting_of(run, name) != setting_of(result.runs[0], name);
  });
}

std::string differences(const BenchResult& result, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string head = "<th></th>", body;
  for (const std::string& name : names) head += fmt::format("<th>{}</th>", escape_markup(name));
  for (size_t i = 0; i < result.runs.size(); ++i) {
    body += fmt::format("<tr><td>{}</td>", run_key(i, result.runs[i].name));
    for (const std::string& name : names)
      body += fmt::format("<td class=\"wrap\">{}</td>", setting_of(result.runs[i], name));
    body += "</tr>\n";
  }
  return table(head, body);
}

}  // namespace

std::string run_key(size_t index, const std::string& name) {
  return fmt::format("<i class=\"key {}\"></i>{}", series_class(index), escape_markup(name));
}

std::string_view verdict(Better better, const std::optional<Change>& change) {
  if (!change || better == Better::neither || change->call != Call::differs) return "";
  return (change->ratio > 1) == (better == Better::higher) ? " good" : " bad";
}

std::string figures_section(const BenchResult& result, const ComparisonRows& rows) {
  if (has_lines(result)) {
    std::string out;
    for (const std::string& name : result.headline)
      if (const ComparisonRow* row = find_row(rows, name))
        out += section(label_of(row->figure), lines_down(result, *row));
    return out + section("Figures", all_figures(result, rows));
  }
  if (result.runs.size() <= kRunsAcross) return section("Figures", figures_across(result, rows));
  return section("Figures", runs_down(result, rows) + all_figures(result, rows));
}

std::string failures_section(const BenchResult& result) {
  std::string body;
  for (size_t i = 0; i < result.runs.size(); ++i)
    for (const auto& [kind, count] : failures_of(result.runs[i]))
      body += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", escape_markup(kind),
                          run_key(i, result.runs[i].name), count);
  if (body.empty()) return "";
  return section("Requests that failed", table("<th>how</th><th>run</th><th>requests</th>", body));
}

std::string settings_section(const BenchResult& result) {
  std::set<std::string> names;
  for (const RunResult& run : result.runs)
    for (const auto& [name, value] : run.settings) names.insert(name);
  std::vector<std::string> different;
  std::string common;
  for (const std::string& name : names)
    if (differs(result, name))
      different.push_back(name);
    else
      common += fmt::format("{}{} = {}", common.empty() ? "" : ", ", escape_markup(name),
                            setting_of(result.runs[0], name));
  if (names.empty()) return "";
  if (!common.empty())
    common = fmt::format("<p class=\"common\">{}{}</p>",
                         result.runs.size() > 1 ? "The same in all runs: " : "", common);
  return section("Settings", differences(result, different) + common);
}

}  // namespace octavo
