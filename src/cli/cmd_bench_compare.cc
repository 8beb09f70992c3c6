#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "bench/comparison.h"
#include "cli/bench_output.h"
#include "cli/commands.h"

namespace octavo::cli {
namespace {

// Its requests are one prompt of each length, alone.
constexpr std::array<std::string_view, 2> kOfKvCache = {"contexts", "gen_tokens"};
constexpr std::array<std::string_view, 3> kNotOfKvCache = {"synthetic", "trace", "max_concurrency"};

std::span<const std::string_view> of_others(std::string_view subject) {
  if (subject == "kv-cache") return kNotOfKvCache;
  return kOfKvCache;
}

Result<void> refuse_flags(const OptionValues& options, std::span<const std::string_view> names,
                          std::string_view subject) {
  for (const std::string_view name : names)
    if (options.is_given(name))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("{} has no meaning for the comparison {}", flag_of(name), subject));
  return {};
}

Result<void> check_subject(std::string_view subject) {
  std::vector<std::string_view> names;
  for (const ComparisonSubject& known : comparison_subjects()) {
    if (known.name == subject) return {};
    names.push_back(known.name);
  }
  return fail(ErrorCode::invalid_argument, fmt::format("there is no comparison '{}'; there are {}",
                                                       subject, fmt::join(names, ", ")));
}

}  // namespace

Result<void> run_bench_compare(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& values = invocation.options;
  const std::string& subject = invocation.positionals[1];
  OCTAVO_CHECK_OK(check_subject(subject));
  OCTAVO_CHECK_OK(refuse_flags(values, of_others(subject), subject));
  OCTAVO_TRY(ComparisonOptions options, read_comparison_options(invocation, terminal));
  if (const auto contexts = values.find<std::vector<int64_t>>("contexts"))
    options.contexts.assign(contexts->begin(), contexts->end());
  options.gen_tokens = values.integer("gen_tokens");
  if (const auto most = values.find<int64_t>("max_concurrency"))
    options.max_concurrency = {static_cast<int>(*most)};
  OCTAVO_TRY(BenchResult result, compare(subject, options));
  return show_result(std::move(result), invocation, terminal);
}

}  // namespace octavo::cli
