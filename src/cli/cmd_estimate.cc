#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/estimate_subject.h"
#include "cli/estimate_trace.h"
#include "cli/json_output.h"
#include "cli/table.h"
#include "kv/estimator.h"

namespace octavo::cli {
namespace {

Result<int64_t> sequence_length(const OptionValues& options, const KvFacts& subject) {
  if (const auto given = options.find<int64_t>("seq_len")) return *given;
  if (subject.context_length) return *subject.context_length;
  return fail(ErrorCode::invalid_argument,
              "the file does not say how long a context is; give --seq-len");
}

std::optional<int64_t> resident_bytes(const EstimateSubject& subject, const KvEstimate& estimate) {
  if (!subject.weight_bytes || !subject.activation_bytes) return std::nullopt;
  return *subject.weight_bytes + *subject.activation_bytes + estimate.total_bytes;
}

double gib(int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

Json to_json(const EstimateSubject& subject, const KvEstimate& estimate,
             const OptionValues& options) {
  Json json = model_json(subject, options);
  json.update({{"seq_len", estimate.seq_len},
               {"batch_size", estimate.batch_size},
               {"exact_bytes", estimate.exact_bytes},
               {"exact_gib", gib(estimate.exact_bytes)},
               {"total_bytes", estimate.total_bytes},
               {"total_gib", gib(estimate.total_bytes)},
               {"lost_bytes", estimate.lost_bytes()},
               {"bytes_per_sequence", estimate.bytes_per_sequence()},
               {"bytes_without_gqa", estimate.bytes_without_gqa},
               {"gqa_ratio", estimate.gqa_ratio()},
               {"windowed_bytes", estimate.windowed_bytes},
               {"weight_bytes", number_or_null(subject.weight_bytes)},
               {"activation_bytes", number_or_null(subject.activation_bytes)},
               {"resident_bytes", number_or_null(resident_bytes(subject, estimate))}});
  if (const auto memory = memory_bytes(options)) {
    json["memory_bytes"] = *memory;
    json["sequences_that_fit"] = estimate.sequences_that_fit(*memory);
  }
  return json;
}

std::string to_table(const EstimateSubject& subject, const KvEstimate& estimate,
                     const OptionValues& options) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](std::string_view what, int64_t bytes, std::string note = "") {
    rows.push_back(
        {std::string(what), human_bytes(bytes), fmt::format("{}", bytes), std::move(note)});
  };
  rows.push_back({"", "", "bytes"});
  add("KV cache", estimate.total_bytes, "whole blocks, as they are allocated");
  add("  by the formula", estimate.exact_bytes,
      "2 x layers x batch x length x KV heads x bytes of a head");
  add("  lost to last blocks", estimate.lost_bytes());
  add("one sequence", estimate.bytes_per_sequence());
  add("without GQA", estimate.bytes_without_gqa, "one KV head per query head");
  add("saved by GQA", estimate.bytes_without_gqa - estimate.total_bytes,
      fmt::format("{:.4g} x less", estimate.gqa_ratio()));
  if (estimate.windowed_bytes != estimate.total_bytes)
    add("within windows", estimate.windowed_bytes, "would do if layers with a window kept no more");
  if (const auto resident = resident_bytes(subject, estimate)) {
    add("weights", *subject.weight_bytes, "as they lie in memory");
    add("activations", *subject.activation_bytes,
        fmt::format("of a step of {} tokens", options.integer("max_num_batched_tokens")));
    add("all together", *resident, "KV cache, weights and activations");
  }
  std::string out = describe_model(subject, options) +
                    fmt::format("{} x {} tokens\n\n", estimate.batch_size, estimate.seq_len) +
                    format_table(rows, "lrrl");
  if (const auto memory = memory_bytes(options))
    out +=
        fmt::format("\n{} sequences of {} tokens fit in {}\n", estimate.sequences_that_fit(*memory),
                    estimate.seq_len, human_bytes(*memory));
  return out;
}

}  // namespace

Result<void> run_estimate(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  OCTAVO_CHECK_OK(check_trace_options(options));
  OCTAVO_TRY(
      const EstimateSubject subject,
      read_estimate_subject(invocation.positionals[0], options.integer("max_num_batched_tokens")));
  if (options.is_given("trace")) return estimate_trace(subject, options, terminal);
  OCTAVO_TRY(const int64_t seq_len, sequence_length(options, subject.kv));
  OCTAVO_TRY(const KvEstimate result,
             estimate(subject.kv.shape, seq_len, options.get<int64_t>("batch_size"),
                      kv_type(options), options.integer("block_size")));
  terminal.write(options.flag("json") ? dump_line(to_json(subject, result, options), 2)
                                      : to_table(subject, result, options));
  return {};
}

}  // namespace octavo::cli
