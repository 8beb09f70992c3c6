#include "cli/estimate_subject.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/model_loading.h"
#include "formats/hf_config.h"
#include "kv/estimator.h"
#include "model/memory_estimate.h"
#include "model/model_config.h"

namespace octavo::cli {
namespace {

// The option table allows the names of KvType and auto, which without --dtype float32 means:
std::string type_name(const OptionValues& options) {
  const std::string name = options.text("kv_cache_dtype");
  return name == "auto" ? "float16" : name;
}

}  // namespace

Result<EstimateSubject> read_estimate_subject(const std::string& model,
                                              int max_num_batched_tokens) {
  if (model.ends_with(".json")) {
    OCTAVO_TRY(const HfConfig config, read_hf_config(model));
    return EstimateSubject{
        {config.model_type, kv_shape(config), config.max_position_embeddings}, {}, {}};
  }
  OCTAVO_TRY(const auto source, open_model_file(model));
  const ModelSource& file = *source;
  EstimateSubject subject;
  OCTAVO_TRY(subject.kv, read_kv_facts(file));
  if (const auto config = read_model_config(file)) {
    OCTAVO_TRY(subject.weight_bytes, loaded_weight_bytes(file));
    subject.activation_bytes = activation_bytes(*config, max_num_batched_tokens);
  }
  return subject;
}

KvType kv_type(const OptionValues& options) { return *kv_type_from_name(type_name(options)); }

std::optional<int64_t> memory_bytes(const OptionValues& options) {
  const auto gib = options.find<double>("memory");
  return gib ? std::optional(static_cast<int64_t>(std::floor(*gib * kGiB))) : std::nullopt;
}

Json number_or_null(const std::optional<int64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json model_json(const EstimateSubject& subject, const OptionValues& options) {
  const KvShape& shape = subject.kv.shape;
  return {{"model_type", subject.kv.family},
          {"num_layers", shape.num_layers},
          {"num_heads", shape.num_heads},
          {"num_kv_heads", shape.num_kv_heads},
          {"head_dim", shape.head_dim},
          {"kv_cache_dtype", type_name(options)},
          {"block_size", options.integer("block_size")}};
}

std::string describe_model(const EstimateSubject& subject, const OptionValues& options) {
  const KvShape& shape = subject.kv.shape;
  return fmt::format(
      "{}{} layers, {} query heads over {} KV heads of {}\n{} in blocks of {} tokens\n",
      subject.kv.family.empty() ? "" : subject.kv.family + ": ", shape.num_layers, shape.num_heads,
      shape.num_kv_heads, shape.head_dim, type_name(options), options.integer("block_size"));
}

}  // namespace octavo::cli
