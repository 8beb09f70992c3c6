#include "cli/estimate_trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/free_memory.h"
#include "bench/trace.h"
#include "bench/trace_sizing.h"
#include "cli/table.h"

namespace octavo::cli {
namespace {

// Memory for the KV cache, and where the number is from.
struct CacheMemory {
  int64_t bytes;
  std::string reason;
};

Result<CacheMemory> cache_memory(const EstimateSubject& subject, const OptionValues& options) {
  if (const auto given = memory_bytes(options)) return CacheMemory{*given, "--memory"};
  if (!subject.weight_bytes || !subject.activation_bytes)
    return fail(ErrorCode::invalid_argument,
                "how much memory the weights take is not known of this file; give --memory, the "
                "GiB for the KV cache");
  const auto available = free_memory_bytes();
  if (!available)
    return fail(ErrorCode::invalid_argument,
                "the system does not say how much memory is available; give --memory");
  const auto share = options.get<double>("gpu_memory_utilization");
  const auto usable = static_cast<int64_t>(share * static_cast<double>(*available));
  return CacheMemory{
      std::max<int64_t>(0, usable - *subject.weight_bytes - *subject.activation_bytes),
      fmt::format("{:.0f} % of the {} available, less weights and activations", share * 100,
                  human_bytes(*available))};
}

Json lengths_json(const Summary& lengths) {
  return {{"mean", lengths.mean},
          {"p50", lengths.p50},
          {"p95", lengths.p95},
          {"p99", lengths.p99},
          {"max", lengths.max}};
}

Json to_json(const EstimateSubject& subject, const TraceSizing& sizing, const CacheMemory& memory,
             const OptionValues& options) {
  Json json = model_json(subject, options);
  json.update({{"weight_bytes", number_or_null(subject.weight_bytes)},
               {"activation_bytes", number_or_null(subject.activation_bytes)},
               {"kv_cache_bytes", memory.bytes},
               {"num_blocks", sizing.num_blocks},
               {"requests", sizing.num_requests},
               {"input_tokens", lengths_json(sizing.input)},
               {"output_tokens", lengths_json(sizing.output)},
               {"total_tokens", lengths_json(sizing.total)},
               {"max_model_len", sizing.max_model_len},
               {"covered_requests", sizing.covered_requests},
               {"p99_model_len", sizing.p99_model_len},
               {"max_num_seqs", sizing.max_num_seqs},
               {"p95_num_seqs", sizing.p95_num_seqs}});
  return json;
}

std::vector<std::string> lengths_row(std::string name, const Summary& lengths) {
  std::vector<std::string> row = {std::move(name)};
  for (const double value : {lengths.mean, lengths.p50, lengths.p95, lengths.p99, lengths.max})
    row.push_back(fmt::format("{:.0f}", value));
  return row;
}

std::string length_reason(const TraceSizing& sizing) {
  if (sizing.covered_requests == sizing.num_requests)
    return fmt::format("input and output of all requests; P99 needs {}", sizing.p99_model_len);
  return fmt::format("what model and memory allow; {} of {} requests fit", sizing.covered_requests,
                     sizing.num_requests);
}

std::string sequences_reason(const TraceSizing& sizing) {
  return fmt::format("at once, of mean length at their end; {} if all are as long as P95",
                     sizing.p95_num_seqs);
}

std::string to_table(const EstimateSubject& subject, const TraceSizing& sizing,
                     const CacheMemory& memory, const OptionValues& options) {
  const std::string lengths = format_table({{"tokens", "mean", "P50", "P95", "P99", "max"},
                                            lengths_row("input", sizing.input),
                                            lengths_row("output", sizing.output),
                                            lengths_row("input and output", sizing.total)},
                                           "lrrrrr");
  const std::string limits = format_table(
      {{"KV cache", human_bytes(memory.bytes), memory.reason},
       {"--max-model-len", fmt::format("{}", sizing.max_model_len), length_reason(sizing)},
       {"--max-num-seqs", fmt::format("{}", sizing.max_num_seqs), sequences_reason(sizing)}},
      "lrl");
  return fmt::format("{}{} requests\n\n{}\n{}", describe_model(subject, options),
                     sizing.num_requests, lengths, limits);
}

}  // namespace

Result<void> check_trace_options(const OptionValues& options) {
  if (!options.is_given("trace")) return {};
  for (const std::string_view name : {"seq_len", "batch_size"})
    if (options.is_given(name))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("--trace says how long sequences are; leave out {}", flag_of(name)));
  return {};
}

Result<void> estimate_trace(const EstimateSubject& subject, const OptionValues& options,
                            Terminal& terminal) {
  OCTAVO_TRY(const Trace trace, read_trace(options.text("trace")));
  OCTAVO_TRY(const CacheMemory memory, cache_memory(subject, options));
  OCTAVO_TRY(const TraceSizing sizing,
             size_for(trace, {.shape = subject.kv.shape,
                              .type = kv_type(options),
                              .block_size = options.integer("block_size"),
                              .kv_bytes = memory.bytes,
                              .context_length = subject.kv.context_length}));
  terminal.write(options.flag("json") ? dump_line(to_json(subject, sizing, memory, options), 2)
                                      : to_table(subject, sizing, memory, options));
  return {};
}

}  // namespace octavo::cli
