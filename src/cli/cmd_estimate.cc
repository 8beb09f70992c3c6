#include <fmt/format.h>

#include <cmath>

#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/model_loading.h"
#include "cli/table.h"
#include "formats/hf_config.h"
#include "kv/estimator.h"
#include "model/kv_facts.h"
#include "model/memory_estimate.h"
#include "model/model_config.h"

namespace octavo::cli {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// What the file says. Weights and activations are known of models that this program runs.
struct Subject {
  KvFacts kv;
  std::optional<int64_t> weight_bytes, activation_bytes;

  std::optional<int64_t> resident_bytes(const KvEstimate& estimate) const {
    if (!weight_bytes || !activation_bytes) return std::nullopt;
    return *weight_bytes + *activation_bytes + estimate.total_bytes;
  }
};

Result<Subject> read_subject(const std::string& model, int max_num_batched_tokens) {
  if (model.ends_with(".json")) {
    OCTAVO_TRY(const HfConfig config, read_hf_config(model));
    return Subject{{config.model_type, kv_shape(config), config.max_position_embeddings}, {}, {}};
  }
  OCTAVO_TRY(const GgufFile file, open_model_file(model));
  Subject subject;
  OCTAVO_TRY(subject.kv, read_kv_facts(file));
  if (const auto config = read_model_config(file)) {
    OCTAVO_TRY(subject.weight_bytes, loaded_weight_bytes(file));
    subject.activation_bytes = activation_bytes(*config, max_num_batched_tokens);
  }
  return subject;
}

Result<int64_t> sequence_length(const OptionValues& options, const KvFacts& subject) {
  if (const auto given = options.find<int64_t>("seq_len")) return *given;
  if (subject.context_length) return *subject.context_length;
  return fail(ErrorCode::invalid_argument,
              "the file does not say how long a context is; give --seq-len");
}

// The option table allows the names of KvType and auto, which without --dtype float32 means:
std::string type_name(const OptionValues& options) {
  const std::string name = options.text("kv_cache_dtype");
  return name == "auto" ? "float16" : name;
}

std::optional<int64_t> memory_bytes(const OptionValues& options) {
  const auto gib = options.find<double>("memory");
  return gib ? std::optional(static_cast<int64_t>(std::floor(*gib * kGiB))) : std::nullopt;
}

double gib(int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

Json number_or_null(const std::optional<int64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json to_json(const Subject& subject, const KvEstimate& estimate, const OptionValues& options) {
  const KvShape& shape = subject.kv.shape;
  Json json = {{"model_type", subject.kv.family},
               {"num_layers", shape.num_layers},
               {"num_heads", shape.num_heads},
               {"num_kv_heads", shape.num_kv_heads},
               {"head_dim", shape.head_dim},
               {"kv_cache_dtype", type_name(options)},
               {"block_size", options.integer("block_size")},
               {"seq_len", estimate.seq_len},
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
               {"resident_bytes", number_or_null(subject.resident_bytes(estimate))}};
  if (const auto memory = memory_bytes(options)) {
    json["memory_bytes"] = *memory;
    json["sequences_that_fit"] = estimate.sequences_that_fit(*memory);
  }
  return json;
}

std::string describe(const KvFacts& subject, const KvEstimate& estimate,
                     const OptionValues& options) {
  const KvShape& shape = subject.shape;
  return fmt::format(
      "{}{} layers, {} query heads over {} KV heads of {}\n{} in blocks of {} tokens\n{} x {} "
      "tokens\n\n",
      subject.family.empty() ? "" : subject.family + ": ", shape.num_layers, shape.num_heads,
      shape.num_kv_heads, shape.head_dim, type_name(options), options.integer("block_size"),
      estimate.batch_size, estimate.seq_len);
}

std::string to_table(const Subject& subject, const KvEstimate& estimate,
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
  if (const auto resident = subject.resident_bytes(estimate)) {
    add("weights", *subject.weight_bytes, "as they lie in memory");
    add("activations", *subject.activation_bytes,
        fmt::format("of a step of {} tokens", options.integer("max_num_batched_tokens")));
    add("all together", *resident, "KV cache, weights and activations");
  }
  std::string out = describe(subject.kv, estimate, options) + format_table(rows, "lrrl");
  if (const auto memory = memory_bytes(options))
    out +=
        fmt::format("\n{} sequences of {} tokens fit in {}\n", estimate.sequences_that_fit(*memory),
                    estimate.seq_len, human_bytes(*memory));
  return out;
}

}  // namespace

Result<void> run_estimate(const Invocation& invocation, Terminal& terminal) {
  const OptionValues& options = invocation.options;
  OCTAVO_TRY(const Subject subject,
             read_subject(invocation.positionals[0], options.integer("max_num_batched_tokens")));
  OCTAVO_TRY(const int64_t seq_len, sequence_length(options, subject.kv));
  OCTAVO_TRY(const KvEstimate result,
             estimate(subject.kv.shape, seq_len, options.get<int64_t>("batch_size"),
                      *kv_type_from_name(type_name(options)), options.integer("block_size")));
  terminal.write(options.flag("json") ? dump_line(to_json(subject, result, options), 2)
                                      : to_table(subject, result, options));
  return {};
}

}  // namespace octavo::cli
