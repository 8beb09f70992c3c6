#include "bench/html_report.h"

#include <fmt/format.h>

#include "base/version.h"
#include "bench/figures.h"
#include "bench/html_style.h"
#include "bench/markup.h"
#include "bench/report_parts.h"

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

std::string facts(const BenchResult& result) {
  std::string notes;
  for (const std::string& note : result.notes)
    notes += fmt::format("<p>{}</p>\n", escape_markup(note));
  const std::string command = escape_markup(result.command);
  return fmt::format(
      "<section>{}<dl>{}{}{}{}{}</dl></section>\n", notes,
      fact("Model", escape_markup(result.model)), fact("Machine", escape_markup(result.machine)),
      fact("Settings", settings_text(result.settings)), fact("Cost", cost_text(result)),
      fact("Command", command.empty() ? "" : fmt::format("<code>{}</code>", command)));
}

std::string header(const BenchResult& result) {
  return fmt::format("<header><p class=\"kicker\">Octavo benchmark</p><h1>{}</h1></header>\n",
                     escape_markup(result.title));
}

std::string footer(const BenchResult& result) {
  const std::string rule = result.runs.size() < 2 ? "" : std::string(kNoiseRule) + " ";
  return fmt::format("<footer>{}Octavo {}, {}.</footer>\n", rule, escape_markup(version()),
                     escape_markup(commit()));
}

}  // namespace

std::string html_report(const BenchResult& result) {
  const ComparisonRows rows = compare_runs(result);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
      "<title>{}</title><style>{}</style></head>\n<body><main>\n",
      escape_markup(result.title), kReportStyle);
  for (const std::string& part :
       {header(result), answer_section(result, rows), facts(result), figures_section(result, rows),
        failures_section(result), all_plots(result), blocks_section(result),
        settings_section(result), footer(result)})
    page += part;
  return page + "</main></body></html>\n";
}

}  // namespace octavo
