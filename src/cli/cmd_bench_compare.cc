#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "bench/comparison.h"
#include "bench/kv_cache_compare.h"
#include "cli/bench_output.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/sampling_options.h"
#include "cli/table.h"
#include "engine/catalog.h"

namespace octavo::cli {
namespace {

KvCacheCompareOptions read_options(const OptionValues& options) {
  KvCacheCompareOptions compare;
  for (const int64_t context : options.get<std::vector<int64_t>>("contexts"))
    compare.contexts.push_back(static_cast<int>(context));
  compare.gen_tokens = options.integer("gen_tokens");
  compare.runs = options.integer("runs");
  return compare;
}

Json to_json(const std::vector<KvCacheComparison>& rows, const KvCacheCompareOptions& options,
             const LoadedEngine& engine) {
  Json json = {{"compare", "kv-cache"},          {"isa", engine.isa},
               {"threads", engine.pool->size()}, {"gen_tokens", options.gen_tokens},
               {"runs", options.runs},           {"contexts", Json::array()}};
  for (const KvCacheComparison& row : rows)
    json["contexts"].push_back({{"context", row.context},
                                {"with_cache_s", row.with_cache_s},
                                {"without_cache_s", row.without_cache_s},
                                {"with_cache_tokens_per_s", row.with_cache_tokens_per_s},
                                {"without_cache_tokens_per_s", row.without_cache_tokens_per_s},
                                {"ratio", row.ratio()},
                                {"same_tokens", row.same_tokens}});
  return json;
}

std::string to_table(const std::vector<KvCacheComparison>& rows) {
  std::vector<std::vector<std::string>> table = {
      {"context", "with cache", "tokens/s", "without", "tokens/s", "ratio", "same tokens"}};
  for (const KvCacheComparison& row : rows)
    table.push_back({fmt::format("{}", row.context), fmt::format("{:.4f} s", row.with_cache_s),
                     fmt::format("{:.2f}", row.with_cache_tokens_per_s),
                     fmt::format("{:.4f} s", row.without_cache_s),
                     fmt::format("{:.2f}", row.without_cache_tokens_per_s),
                     fmt::format("{:.1f} x", row.ratio()), row.same_tokens ? "yes" : "no"});
  return format_table(table, "rrrrrrr");
}

Result<void> compare_with_kv_cache(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  EngineOptions engine_options = read_engine_options(options);
  OCTAVO_TRY(engine_options.model, find_model(invocation.positionals[0], terminal));
  engine_options.max_num_seqs = 1;
  OCTAVO_TRY(const LoadedEngine engine, load_generator(std::move(engine_options), terminal));
  KvCacheCompareOptions compare = read_options(options);
  compare.on_progress = [&](int done, int total) {
    terminal.progress(fmt::format("Context {} of {}", done + 1, total));
  };
  OCTAVO_TRY(const std::vector<KvCacheComparison> rows, compare_kv_cache(engine, compare));
  terminal.clear_progress();
  terminal.write(options.flag("json") ? dump_line(to_json(rows, compare, engine), 2)
                                      : to_table(rows));
  return {};
}

// Of the subject kv-cache alone.
constexpr std::array<std::string_view, 3> kOwnFlags = {"contexts", "gen_tokens", "runs"};

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
  const std::string& subject = invocation.positionals[1];
  OCTAVO_CHECK_OK(check_subject(subject));
  if (subject != "kv-cache") {
    OCTAVO_CHECK_OK(refuse_flags(invocation.options, kOwnFlags, subject));
  } else {
    OCTAVO_CHECK_OK(compare_with_kv_cache(invocation, terminal));
  }
  // The growing contexts are a JSON object of their own.
  if (subject == "kv-cache" && invocation.options.flag("json")) return {};
  OCTAVO_TRY(const ComparisonOptions options, read_comparison_options(invocation, terminal));
  OCTAVO_TRY(BenchResult result, compare(subject, options));
  return show_result(std::move(result), invocation, terminal);
}

}  // namespace octavo::cli
