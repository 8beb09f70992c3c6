#include <fmt/format.h>

#include "bench/kv_cache_compare.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/sampling_options.h"
#include "cli/table.h"

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

}  // namespace

Result<void> run_bench_compare(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  OCTAVO_CHECK_OK(check_engine_flags(options));
  EngineOptions engine_options = read_engine_options(options);
  engine_options.model = invocation.positionals[0];
  OCTAVO_TRY(const LoadedEngine engine, load_with_progress(std::move(engine_options), terminal));
  KvCacheCompareOptions compare = read_options(options);
  compare.on_progress = [&](int done, int total) {
    terminal.progress(fmt::format("Context {} of {}", done + 1, total));
  };
  OCTAVO_TRY(const std::vector<KvCacheComparison> rows, compare_kv_cache(engine, compare));
  terminal.write(options.flag("json") ? dump_line(to_json(rows, compare, engine), 2)
                                      : to_table(rows));
  return {};
}

}  // namespace octavo::cli
