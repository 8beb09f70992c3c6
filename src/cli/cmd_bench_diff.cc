#include <filesystem>

#include "bench/diff.h"
#include "bench/result_json.h"
#include "cli/bench_output.h"
#include "cli/commands.h"
#include "cli/terminal.h"

namespace octavo::cli {
namespace {

// The file's name without folder and ending, or with both where that is the same for two files.
std::pair<std::string, std::string> short_names(const std::string& a, const std::string& b) {
  const auto stem = [](const std::string& path) {
    return one_line(std::filesystem::path(path).stem().string());
  };
  if (stem(a) != stem(b)) return {stem(a), stem(b)};
  return {one_line(a), one_line(b)};
}

}  // namespace

Result<void> run_bench_diff(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  OCTAVO_CHECK_OK(check_outputs(options));
  const std::string &path_a = invocation.positionals[0], &path_b = invocation.positionals[1];
  OCTAVO_TRY(const BenchResult a, read_result(path_a));
  OCTAVO_TRY(const BenchResult b, read_result(path_b));
  const auto [name_a, name_b] = short_names(path_a, path_b);
  OCTAVO_TRY(const std::vector<BenchResult> pairs,
             pair_results(a, name_a, b, name_b, options.text("run")));
  const bool to_file =
      options.is_given("html") || options.is_given("output") || options.flag("json");
  if (pairs.size() > 1 && to_file)
    return fail(ErrorCode::invalid_argument,
                "the results have several runs in common; name one with --run for --html, "
                "--output or --json");
  for (const BenchResult& pair : pairs) {
    if (pairs.size() > 1) terminal.write((&pair == pairs.data() ? "" : "\n") + pair.title + "\n");
    OCTAVO_CHECK_OK(write_result(pair, invocation, terminal));
  }
  return {};
}

}  // namespace octavo::cli
