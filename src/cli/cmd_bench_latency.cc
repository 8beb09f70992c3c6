#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"
#include "bench/latency.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/sampling_options.h"
#include "cli/table.h"

namespace octavo::cli {
namespace {

constexpr double kMega = 1e6;

std::vector<int> integers(const OptionValues& options, std::string_view name) {
  std::vector<int> out;
  for (const int64_t value : options.get<std::vector<int64_t>>(name))
    out.push_back(static_cast<int>(value));
  return out;
}

LatencyOptions read_options(const OptionValues& options) {
  return {.lengths = {.prompt_tokens = options.integer("prompt_tokens"),
                      .gen_tokens = options.integer("gen_tokens")},
          .depths = integers(options, "depth"),
          .batch_sizes = integers(options, "batch_size"),
          .shared_prefix = options.integer("shared_prefix"),
          .repeat = options.integer("repeat"),
          .on_progress = {}};
}

Json to_json(const TimeShare& shares) {
  Json json = Json::object();
  for (const auto& [name, share] : shares) json[std::string(name)] = share;
  return json;
}

Json to_json(const LatencyResult& r) {
  return {{"batch_size", r.which.batch_size},
          {"depth", r.which.depth},
          {"prefill_tok_s", r.prefill_tok_s},
          {"decode_tok_s", r.decode_tok_s},
          {"weight_bytes_per_token", r.weight_bytes_per_token},
          {"kv_bytes_per_token", r.kv_bytes_per_token},
          {"read_gb_s", r.read_gb_s},
          {"prefill_multiply_share", r.prefill_multiply_share},
          {"decode_read_share", r.decode_read_share},
          {"decode_multiply_share", r.decode_multiply_share},
          {"outside_kernels", outside_kernels(r.decode_time)},
          {"prefill_outside_kernels", outside_kernels(r.prefill_time)},
          {"time_share", to_json(r.decode_time)},
          {"prefill_time_share", to_json(r.prefill_time)}};
}

Json to_json(const LatencyReport& report, const LatencyOptions& options, const std::string& model,
             const LoadedEngine& engine) {
  Json json = {{"model", model},
               {"version", version()},
               {"commit", commit()},
               {"isa", engine.isa},
               {"threads", engine.pool->size()},
               {"prompt_tokens", options.lengths.prompt_tokens},
               {"gen_tokens", options.lengths.gen_tokens},
               {"shared_prefix", options.shared_prefix},
               {"repeat", options.repeat},
               {"max_num_batched_tokens", engine.model->limits().max_num_batched_tokens},
               {"limits",
                {{"read_gb_s", report.limits.read_gb_s},
                 {"int8_gmac_s", report.limits.int8_gmac_s},
                 {"fp32_gflop_s", report.limits.fp32_gflop_s}}},
               {"results", Json::array()},
               {"skipped", Json::array()}};
  for (const LatencyResult& result : report.results) json["results"].push_back(to_json(result));
  for (const SkippedCase& skipped : report.skipped)
    json["skipped"].push_back({{"batch_size", skipped.which.batch_size},
                               {"depth", skipped.which.depth},
                               {"reason", skipped.reason}});
  return json;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string speeds(const LatencyReport& report) {
  std::vector<std::vector<std::string>> table = {
      {"depth", "batch", "prefill tok/s", "of multiplying", "decode tok/s", "of reading",
       "of multiplying", "weights MB/token", "limit GB/s"}};
  for (const LatencyResult& r : report.results)
    table.push_back({fmt::format("{}", r.which.depth), fmt::format("{}", r.which.batch_size),
                     fmt::format("{:.1f}", r.prefill_tok_s), percent(r.prefill_multiply_share),
                     fmt::format("{:.1f}", r.decode_tok_s), percent(r.decode_read_share),
                     percent(r.decode_multiply_share),
                     fmt::format("{:.1f}", r.weight_bytes_per_token / kMega),
                     fmt::format("{:.1f}", r.read_gb_s)});
  return format_table(table, "rrrrrrrrr");
}

std::vector<std::string> time_row(std::string what, const LatencyCase& which,
                                  const TimeShare& shares) {
  std::vector<std::string> row = {std::move(what), fmt::format("{}", which.depth),
                                  fmt::format("{}", which.batch_size)};
  for (const auto& [name, share] : shares) row.push_back(fmt::format("{:.1f}", 100 * share));
  row.push_back(fmt::format("{:.1f}", 100 * outside_kernels(shares)));
  return row;
}

std::string times(const LatencyReport& report) {
  std::vector<std::string> head = {"% of time", "depth", "batch"};
  for (const auto& [name, share] : report.results.front().decode_time) {
    head.emplace_back(name);
    std::replace(head.back().begin(), head.back().end(), '_', ' ');
  }
  head.emplace_back("outside kernels");
  std::vector<std::vector<std::string>> table = {head};
  int depth = -1;
  for (const LatencyResult& r : report.results) {
    if (r.which.depth != depth)
      table.push_back(time_row("prefill", {r.which.depth, 1}, r.prefill_time));
    depth = r.which.depth;
    table.push_back(time_row("decode", r.which, r.decode_time));
  }
  return format_table(table, "l" + std::string(head.size() - 1, 'r'));
}

std::string to_text(const LatencyReport& report, const LoadedEngine& engine) {
  std::string out = fmt::format(
      "{}, {} thread{}; limits measured here: reading {:.1f} GB/s, 8-bit {:.0f} GMAC/s, fp32 "
      "{:.0f} "
      "GFLOP/s\n\n{}\n{}",
      engine.isa, engine.pool->size(), engine.pool->size() == 1 ? "" : "s", report.limits.read_gb_s,
      report.limits.int8_gmac_s, report.limits.fp32_gflop_s, speeds(report), times(report));
  for (const SkippedCase& skipped : report.skipped)
    out += fmt::format("{}left out: depth {}, batch {}: {}\n",
                       &skipped == report.skipped.data() ? "\n" : "", skipped.which.depth,
                       skipped.which.batch_size, skipped.reason);
  return out;
}

}  // namespace

Result<void> run_bench_latency(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& values = invocation.options;
  const std::string& model = invocation.positionals[0];
  LatencyOptions options = read_options(values);
  EngineOptions engine_options = read_engine_options(values);
  engine_options.model = model;
  engine_options.max_num_seqs =
      *std::max_element(options.batch_sizes.begin(), options.batch_sizes.end());
  OCTAVO_TRY(LoadedEngine engine, load_generator(std::move(engine_options), terminal, load_model));
  options.on_progress = [&](int done, int total) {
    terminal.long_progress(fmt::format("octavo: measuring {} of {}", done + 1, total));
  };
  // Damaged weights are no model to measure, and the check takes a core.
  if (engine.pack_job) OCTAVO_CHECK_OK(engine.pack_job->verdict());
  const auto report = measure_latency(engine, options);
  terminal.clear_progress();
  if (!report) return tl::make_unexpected(report.error());
  terminal.write(values.flag("json") ? dump_line(to_json(*report, options, model, engine), 2)
                                     : to_text(*report, engine));
  return {};
}

}  // namespace octavo::cli
