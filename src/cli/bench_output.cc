#include "cli/bench_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/cores.h"
#include "base/version.h"
#include "bench/answer.h"
#include "bench/compare_runs.h"
#include "bench/figures.h"
#include "bench/html_report.h"
#include "bench/result_json.h"
#include "bench/synthetic_spec.h"
#include "bench/trace.h"
#include "cli/command_text.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/output_file.h"
#include "cli/sampling_options.h"
#include "cli/table.h"
#include "formats/quote.h"
#include "kernels/isa.h"

namespace octavo::cli {
namespace {

constexpr std::string_view kNoFile = "none";

std::string machine_text() {
  const auto ops = kernels::select_isa_from_environment();
  return fmt::format("{} cores, {}", available_cores(), ops ? (*ops)->isa : "?");
}

std::string ratio_cell(const std::optional<Change>& change) {
  if (!change) return "-";
  return change->call == Call::noise ? "~ 1" : format_ratio(change->ratio);
}

std::string label_of(const Figure& figure) {
  const bool has_unit = !figure.unit.empty() && figure.unit != "share";
  return has_unit ? fmt::format("{} ({})", figure.label, figure.unit) : figure.label;
}

// Figures down, runs across; the ratio to the first run beside each other run.
std::string figures_table(const BenchResult& result, const std::vector<ComparisonRow>& figures) {
  std::vector<std::vector<std::string>> rows = {{""}};
  std::string alignment = "l";
  for (size_t i = 0; i < result.runs.size(); ++i) {
    rows[0].push_back(one_line(result.runs[i].name));
    alignment += 'r';
    if (i == 0) continue;
    rows[0].push_back("");
    alignment += 'r';
  }
  for (const ComparisonRow& row : figures) {
    std::vector<std::string> cells = {label_of(row.figure)};
    for (size_t i = 0; i < row.values.size(); ++i) {
      cells.push_back(format_value(row.values[i], row.figure.unit));
      if (i > 0) cells.push_back(ratio_cell(row.changes[i]));
    }
    rows.push_back(std::move(cells));
  }
  return format_table(rows, alignment);
}

// Many runs are easier to read one below the other, with what there is room for on a line; the page
// and the JSON have all.
std::string runs_table(const BenchResult& result, const std::vector<ComparisonRow>& figures) {
  std::vector<std::vector<std::string>> rows = {{result.x_label}};
  std::string alignment = "l";
  const std::vector<const ComparisonRow*> shown = main_rows(result, figures);
  for (const ComparisonRow* row : shown) {
    rows[0].push_back(label_of(row->figure));
    alignment += 'r';
  }
  for (size_t i = 0; i < result.runs.size(); ++i) {
    rows.push_back({one_line(result.runs[i].name)});
    for (const ComparisonRow* row : shown)
      rows.back().push_back(format_value(row->values[i], row->figure.unit));
  }
  return format_table(rows, alignment);
}

// Of a sweep with a line for each technique: one row for each value, and the ratio beside it.
std::string lines_table(const BenchResult& result, const std::vector<ComparisonRow>& figures) {
  std::string text;
  for (const ComparisonRow* row : headline_rows(result, figures)) {
    std::vector<std::vector<std::string>> table = {
        {result.x_label, "", label_of(row->figure), "ratio", "lowest", "highest", "rounds"}};
    for (size_t i = 0; i < result.runs.size(); ++i) {
      const RunResult& run = result.runs[i];
      table.push_back({fmt::format("{:g}", run.x.value_or(0)), one_line(run.series),
                       format_value(row->values[i], row->figure.unit)});
      const auto& change = row->changes[i];
      if (!change || baseline_of(result, i) == i) continue;
      for (const double ratio : {change->ratio, change->low, change->high})
        table.back().push_back(ratio_text(ratio));
      table.back().push_back(fmt::format("{}", change->rounds));
    }
    text += (text.empty() ? "" : "\n") + format_table(table, "rlrrrrr");
  }
  return text;
}

constexpr size_t kRunsAcross = 3;

std::string tables(const BenchResult& result, const std::vector<ComparisonRow>& rows) {
  if (has_lines(result)) return lines_table(result, rows);
  return result.runs.size() <= kRunsAcross ? figures_table(result, rows) : runs_table(result, rows);
}

// The answer first.
std::string to_text(const BenchResult& result) {
  const std::vector<ComparisonRow> rows = compare_runs(result);
  std::string text;
  for (const std::string& answer : answers(result, rows)) text += one_line(answer) + "\n";
  text += "\n" + tables(result, rows);
  for (const std::string& note : result.notes) text += "\n" + note + "\n";
  return text;
}

std::string default_html(const Invocation& invocation) {
  if (invocation.command->command != Command::bench_compare || invocation.options.flag("json"))
    return std::string(kNoFile);
  return fmt::format("octavo-bench-{}.html", invocation.positionals[1]);
}

}  // namespace

Result<void> check_outputs(const OptionValues& options) {
  for (const std::string_view name : {"output", "html"})
    if (options.is_given(name) && options.text(name) != kNoFile)
      OCTAVO_CHECK_OK(check_can_write(options.text(name)));
  return {};
}

Result<ComparisonOptions> read_comparison_options(const Invocation& invocation,
                                                  Terminal& terminal) {
  const OptionValues& options = invocation.options;
  ComparisonOptions compare;
  compare.engine = read_engine_options(options);
  OCTAVO_TRY(compare.engine.model, find_model(invocation.positionals[0], terminal));
  OCTAVO_CHECK_OK(check_outputs(options));
  if (options.is_given("synthetic") && options.is_given("trace"))
    return fail(ErrorCode::invalid_argument, "give at most one of --synthetic and --trace");
  if (options.is_given("synthetic")) {
    OCTAVO_TRY(compare.requests, parse_synthetic(options.text("synthetic")));
  }
  if (options.is_given("trace")) {
    OCTAVO_TRY(compare.trace, read_trace(options.text("trace")));
  }
  if (const auto rounds = options.find<int64_t>("repeat"))
    compare.repeat = static_cast<int>(*rounds);
  compare.full = options.flag("full");
  compare.sequences_given = options.is_given("max_num_seqs");
  compare.on_progress = [&terminal](std::string_view run, int done, int total) {
    terminal.long_progress(fmt::format("octavo: {}: {} of {} requests", run, done, total));
  };
  return compare;
}

Result<void> show_result(BenchResult result, const Invocation& invocation, Terminal& terminal,
                         const std::string& text) {
  result.machine = machine_text();
  result.command = command_text(invocation);
  result.settings["version"] = fmt::format("{} ({})", version(), commit());
  if (invocation.options.has("cost_per_hour"))
    result.cost_per_hour = invocation.options.find<double>("cost_per_hour");
  return write_result(result, invocation, terminal, text);
}

Result<void> write_result(const BenchResult& result, const Invocation& invocation,
                          Terminal& terminal, const std::string& text) {
  const OptionValues& options = invocation.options;
  terminal.clear_progress();
  terminal.write(options.flag("json") ? dump_line(to_json(result), 1)
                 : text.empty()       ? to_text(result)
                                      : text);
  if (options.is_given("output"))
    OCTAVO_CHECK_OK(write_output_file(options.text("output"), dump_line(to_json(result), 1)));
  const std::string html =
      options.is_given("html") ? options.text("html") : default_html(invocation);
  if (html == kNoFile) return {};
  OCTAVO_CHECK_OK(write_output_file(html, html_report(result)));
  terminal.say(fmt::format("octavo: the report is in {}", html));
  return {};
}

}  // namespace octavo::cli
