#include "formats/hf_quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "formats/json_section.h"
#include "formats/quote.h"

namespace octavo {
namespace {

using nlohmann::json;
using Fields = std::span<const std::string_view>;

constexpr int64_t kBlock = 32;

// What is read, and how the weights were found or are to be run, which says nothing about them.
constexpr std::string_view kGptqFields[] = {
    "quant_method", "bits", "group_size", "checkpoint_format", "is_marlin_format", "desc_act",
    "sym", "lm_head",
    // Without effect.
    "damp_percent", "damp_auto_increment", "static_groups", "true_sequential", "mse", "meta",
    "dataset", "tokenizer", "model_name_or_path", "model_file_base_name", "pack_dtype",
    "module_name_preceding_first_block", "modules_in_block_to_quantize", "block_name_to_quantize",
    "use_cuda_fp16", "model_seqlen", "max_input_length", "use_exllama", "disable_exllama",
    "exllama_config", "pad_token_id", "batch_size", "cache_block_outputs", "backend",
    "act_group_aware", "quantizer", "offload_to_disk", "parallel_packing", "device"};
constexpr std::string_view kAwqFields[] = {
    "quant_method", "bits", "w_bit", "group_size", "q_group_size", "version", "zero_point",
    // Without effect: what is not converted has plain tensors.
    "modules_to_not_convert", "do_fuse", "fuse_max_seq_len", "modules_to_fuse", "exllama_config",
    "backend", "pack_dtype", "meta", "checkpoint_format", "desc_act", "sym", "lm_head"};
constexpr std::string_view kCompressedFields[] = {
    "quant_method",    "config_groups",       "format",
    "kv_cache_scheme", "sparsity_config",     "transform_config",
    "ignore",          "quantization_status", "global_compression_ratio",
    "version"};
constexpr std::string_view kGroupFields[] = {"targets", "weights", "input_activations",
                                             "output_activations", "format"};
constexpr std::string_view kWeightFields[] = {
    "num_bits",    "type",     "strategy",        "group_size", "dynamic",
    "symmetric",   "actorder", "block_structure", "observer",   "observer_kwargs",
    "scale_dtype", "zp_dtype"};

class Reader {
 public:
  Reader(const json& object, const std::string& file, std::string prefix)
      : section_(object, file, std::move(prefix)) {}

  Result<HfQuantization> read() const {
    OCTAVO_TRY(const auto method, section_.find_string("quant_method"));
    if (method == "gptq") return gptq();
    if (method == "awq") return awq();
    if (method == "compressed-tensors") return compressed();
    return section_.error("quant_method",
                          fmt::format("means weights quantised by {}, which are not read; "
                                      "supported are gptq, awq and compressed-tensors, of 4 bits. "
                                      "Take the folder of the unquantised model",
                                      quote(method.value_or("an unknown method"))),
                          ErrorCode::unsupported);
  }

 private:
  Result<HfQuantization> gptq() const {
    OCTAVO_CHECK_OK(known(kGptqFields));
    OCTAVO_CHECK_OK(bits("bits"));
    OCTAVO_CHECK_OK(only("is_marlin_format", false));
    OCTAVO_CHECK_OK(only("lm_head", false));
    OCTAVO_TRY(const auto format, section_.find_string("checkpoint_format"));
    if (format && *format != "gptq" && *format != "gptq_v2")
      return unsupported("checkpoint_format", *format, "gptq and gptq_v2");
    HfQuantization out{.method = PackingMethod::gptq, .zero_plus_one = format != "gptq_v2"};
    OCTAVO_TRY(out.group_size, group_size("group_size"));
    return out;
  }

  Result<HfQuantization> awq() const {
    OCTAVO_CHECK_OK(known(kAwqFields));
    OCTAVO_CHECK_OK(bits(section_.find("w_bit") ? "w_bit" : "bits"));
    OCTAVO_TRY(const auto version, section_.find_string("version"));
    if (version && *version != "gemm" && *version != "GEMM")
      return unsupported("version", *version, "gemm");
    HfQuantization out{.method = PackingMethod::awq};
    OCTAVO_TRY(out.group_size,
               group_size(section_.find("q_group_size") ? "q_group_size" : "group_size"));
    return out;
  }

  Result<HfQuantization> compressed() const {
    OCTAVO_CHECK_OK(known(kCompressedFields));
    OCTAVO_CHECK_OK(empty({"kv_cache_scheme", "sparsity_config", "transform_config"}));
    OCTAVO_CHECK_OK(packed_format());
    const json* groups = section_.find("config_groups");
    if (!groups || !groups->is_object() || groups->size() != 1 || !groups->front().is_object())
      return section_.error("config_groups", "is not one group; only one is supported",
                            ErrorCode::unsupported);
    const Reader group(groups->front(), section_.file(), section_.prefix() + "config_groups.*.");
    return group.compressed_group();
  }

  Result<HfQuantization> compressed_group() const {
    OCTAVO_CHECK_OK(known(kGroupFields));
    OCTAVO_CHECK_OK(empty({"input_activations", "output_activations"}));
    OCTAVO_CHECK_OK(packed_format());
    const json* weights = section_.find("weights");
    if (!weights || !weights->is_object()) return section_.error("weights", "is not an object");
    return Reader(*weights, section_.file(), section_.prefix() + "weights.").compressed_weights();
  }

  Result<HfQuantization> compressed_weights() const {
    OCTAVO_CHECK_OK(known(kWeightFields));
    OCTAVO_CHECK_OK(bits("num_bits"));
    OCTAVO_CHECK_OK(only("dynamic", false));
    OCTAVO_TRY(const auto type, section_.find_string("type"));
    if (type && *type != "int") return unsupported("type", *type, "int");
    HfQuantization out{.method = PackingMethod::compressed};
    OCTAVO_TRY(const auto strategy, section_.find_string("strategy"));
    if (strategy == "channel") return out;
    if (strategy != "group")
      return unsupported("strategy", strategy.value_or("null"), "group and channel");
    OCTAVO_TRY(out.group_size, group_size("group_size"));
    return out;
  }

  Result<void> packed_format() const {
    OCTAVO_TRY(const auto format, section_.find_string("format"));
    if (!format || *format == "pack-quantized") return {};
    return unsupported("format", *format, "pack-quantized");
  }

  tl::unexpected<Error> unsupported(std::string_view field, std::string_view value,
                                    std::string_view known) const {
    return section_.error(field, fmt::format("is {}; supported: {}", quote(value), known),
                          ErrorCode::unsupported);
  }

  Result<void> known(Fields fields) const {
    for (const auto& [field, value] : section_.object().items())
      if (!value.is_null() && std::find(fields.begin(), fields.end(), field) == fields.end())
        return fail(ErrorCode::unsupported,
                    fmt::format("{}: field {} is not known: it may say something else about the "
                                "weights",
                                section_.file(), quote(section_.prefix() + field)));
    return {};
  }

  Result<void> bits(const char* field) const {
    OCTAVO_TRY(const auto value, section_.find_number(field));
    if (!value) return section_.error(field, "is missing");
    if (*value == 4) return {};
    return unsupported(field, std::to_string(*value), "4");
  }

  Result<void> only(const char* field, bool value) const {
    OCTAVO_TRY(const auto found, section_.find_bool(field));
    if (found.value_or(value) == value) return {};
    return unsupported(field, value ? "false" : "true", value ? "true" : "false");
  }

  Result<void> empty(std::initializer_list<const char*> fields) const {
    for (const char* field : fields)
      if (const json* value = section_.find(field); value && !value->empty())
        return section_.error(field, "is given, which is not supported", ErrorCode::unsupported);
    return {};
  }

  Result<int64_t> group_size(const char* field) const {
    OCTAVO_TRY(const auto size, section_.find_number(field, -1));
    if (!size) return section_.error(field, "is missing");
    if (*size == -1) return 0;
    if (*size > 0 && *size % kBlock == 0) return *size;
    return unsupported(field, std::to_string(*size), "-1 and multiples of 32");
  }

  JsonSection section_;
};

}  // namespace

std::string_view name(PackingMethod method) {
  switch (method) {
    case PackingMethod::gptq:
      return "gptq";
    case PackingMethod::awq:
      return "awq";
    case PackingMethod::compressed:
      return "compressed-tensors";
  }
  return {};
}

Result<HfQuantization> read_hf_quantization(const json& config, const std::string& name) {
  if (!config.is_object())
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: field 'quantization_config' is not an object", name));
  return Reader(config, name, "quantization_config.").read();
}

}  // namespace octavo
