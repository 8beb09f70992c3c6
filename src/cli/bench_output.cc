#include "cli/bench_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/cores.h"
#include "base/version.h"
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

// Figures down, runs across; the ratio to the first run beside each other run.
std::string figures_table(const BenchResult& result) {
  std::vector<std::vector<std::string>> rows = {{""}};
  std::string alignment = "l";
  for (size_t i = 0; i < result.runs.size(); ++i) {
    rows[0].push_back(one_line(result.runs[i].name));
    alignment += 'r';
    if (i == 0) continue;
    rows[0].push_back("");
    alignment += 'r';
  }
  for (const ComparisonRow& row : compare_runs(result)) {
    std::vector<std::string> cells = {
        row.figure.unit.empty() || row.figure.unit == "share"
            ? row.figure.label
            : fmt::format("{} ({})", row.figure.label, row.figure.unit)};
    for (size_t i = 0; i < row.values.size(); ++i) {
      cells.push_back(format_value(row.values[i], row.figure.unit));
      if (i > 0) cells.push_back(format_ratio(row.ratios[i]));
    }
    rows.push_back(std::move(cells));
  }
  return format_table(rows, alignment);
}

// What there is room for on a line; the page and the JSON have all.
constexpr std::array<std::string_view, 8> kMainFigures = {
    "output_throughput", "median_ttft_ms", "p95_ttft_ms",  "p95_tpot_ms",
    "p99_itl_ms",        "p95_e2el_ms",    "mean_running", "max_blocks_used"};

// Many runs are easier to read one below the other.
std::string runs_table(const BenchResult& result) {
  std::vector<std::vector<std::string>> rows = {{""}};
  std::string alignment = "l";
  std::vector<ComparisonRow> figures = compare_runs(result);
  std::erase_if(figures, [](const ComparisonRow& row) {
    return std::find(kMainFigures.begin(), kMainFigures.end(), row.figure.name) ==
           kMainFigures.end();
  });
  for (const ComparisonRow& row : figures) {
    rows[0].push_back(row.figure.label);
    alignment += 'r';
  }
  for (size_t i = 0; i < result.runs.size(); ++i) {
    rows.push_back({one_line(result.runs[i].name)});
    for (const ComparisonRow& row : figures)
      rows.back().push_back(format_value(row.values[i], row.figure.unit));
  }
  return format_table(rows, alignment);
}

std::string extra_settings(const BenchResult& result) {
  constexpr std::array names = {"median gap before", "P99 gap", "largest gap", "gap ratio", "TTFT",
                                "TTFT ratio",        "void"};
  std::vector<std::vector<std::string>> rows = {{""}};
  for (const char* name : names) rows[0].push_back(name);
  bool any = false;
  for (const RunResult& run : result.runs) {
    rows.push_back({one_line(run.name)});
    for (const char* name : names) {
      const auto found = run.settings.find(name);
      rows.back().push_back(found == run.settings.end() ? "" : found->second);
      any |= found != run.settings.end();
    }
  }
  return any ? format_table(rows, "lrrrrrrl") + "\n" : "";
}

constexpr size_t kRunsAcross = 3;

std::string to_text(const BenchResult& result) {
  std::string text = extra_settings(result);
  text += result.runs.size() <= kRunsAcross ? figures_table(result) : runs_table(result);
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
  if (const auto most = options.find<int64_t>("max_concurrency"))
    compare.max_concurrency = static_cast<int>(*most);
  compare.repeat = options.integer("repeat");
  compare.on_progress = [&terminal](std::string_view run, int done, int total) {
    terminal.progress(fmt::format("Run {} of {}: {}", done + 1, total, run));
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
