#include "bench/diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "bench/answer.h"
#include "formats/quote.h"

namespace octavo {
namespace {

using Settings = std::map<std::string, std::string>;

Settings all_settings(const BenchResult& result, const RunResult& run) {
  Settings all = result.settings;
  for (const auto& [name, value] : run.settings) all[name] = value;
  if (!result.machine.empty()) all["machine"] = result.machine;
  if (!result.command.empty()) all["command"] = result.command;
  return all;
}

// A ratio of unlike things is not what it seems.
void note_differences(const Settings& a, const Settings& b, BenchResult& pair) {
  for (const char* name :
       {"machine", "dataset", "endpoint", "max_concurrency", "request_rate", "goodput"}) {
    const auto of_a = a.find(name), of_b = b.find(name);
    if (of_a != a.end() && of_b != b.end() && of_a->second != of_b->second)
      pair.notes.push_back(
          fmt::format("They differ in {}: {} and {}.", name, of_a->second, of_b->second));
  }
}

RunResult renamed(const BenchResult& result, RunResult run, std::string name) {
  run.settings = all_settings(result, run);
  run.name = std::move(name);
  return run;
}

BenchResult pair_of(const BenchResult& a, const RunResult& run_a, const std::string& name_a,
                    const BenchResult& b, const RunResult& run_b, const std::string& name_b) {
  BenchResult pair;
  pair.title =
      run_a.name == run_b.name ? run_text(a, run_a) : fmt::format("{} and {}", name_a, name_b);
  pair.model = a.model == b.model ? a.model : fmt::format("{} and {}", a.model, b.model);
  if (a.model != b.model)
    pair.notes.push_back(fmt::format("They differ in the model: {} and {}.", a.model, b.model));
  note_differences(all_settings(a, run_a), all_settings(b, run_b), pair);
  pair.runs = {renamed(a, run_a, name_a), renamed(b, run_b, name_b)};
  return pair;
}

const RunResult* find_run(const BenchResult& result, std::string_view name) {
  const auto it = std::ranges::find_if(result.runs, [&](auto& run) { return run.name == name; });
  return it == result.runs.end() ? nullptr : &*it;
}

std::string names_of(const BenchResult& result) {
  std::string names;
  for (const RunResult& run : result.runs) names += (names.empty() ? "" : ", ") + quote(run.name);
  return names.empty() ? "none" : names;
}

}  // namespace

Result<std::vector<BenchResult>> pair_results(const BenchResult& a, const std::string& name_a,
                                              const BenchResult& b, const std::string& name_b,
                                              std::string_view only) {
  std::vector<BenchResult> pairs;
  if (only.empty() && a.runs.size() == 1 && b.runs.size() == 1)
    return std::vector{pair_of(a, a.runs[0], name_a, b, b.runs[0], name_b)};
  for (const RunResult& run : a.runs) {
    const RunResult* other = find_run(b, run.name);
    if (other && (only.empty() || run.name == only))
      pairs.push_back(pair_of(a, run, name_a, b, *other, name_b));
  }
  if (!pairs.empty()) return pairs;
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("the results have no run{} in common: {} has {}, {} has {}",
                  only.empty() ? "" : " " + quote(only), name_a, names_of(a), name_b, names_of(b)));
}

}  // namespace octavo
