#include "model/model_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "formats/quote.h"
#include "model/config_reader.h"
#include "model/rope_config.h"

namespace octavo {
namespace {

// Keys below "ARCH." whose meaning is known: read here, or of no effect on the result. Any other
// key may change what the model computes, so a file that has one is refused.
constexpr std::string_view kCommonKeys[] = {
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.causal",
    "attention.scale",
    "pooling_type",
    "pooling_normalize",
    "matryoshka",
    "tensor_data_layout",
};
constexpr std::string_view kDecoderKeys[] = {
    "attention.layer_norm_rms_epsilon",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.attn_factor",
    "rope.scaling.original_context_length",
    "rope.scaling.finetuned",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
};
constexpr std::string_view kEncoderKeys[] = {"attention.layer_norm_epsilon"};
constexpr std::string_view kWindowKeys[] = {"attention.sliding_window"};
constexpr std::string_view kPatternKeys[] = {"attention.sliding_window_pattern"};
constexpr std::string_view kLocalRopeKeys[] = {"rope.freq_base_swa"};
constexpr std::string_view kMultiplierKeys[] = {"embedding_scale", "residual_scale", "logit_scale"};
constexpr std::string_view kCapKeys[] = {"attn_logit_softcapping", "final_logit_softcapping"};
constexpr std::string_view kExpertKeys[] = {"expert_count", "expert_used_count",
                                            "expert_feed_forward_length"};

constexpr int kMaxLayers = 4096;

// Keys that ask for nothing if they have this value; of a family that is not run with them, any
// other value is refused.
struct NeutralKey {
  std::string_view name;
  double value;
};
constexpr NeutralKey kNeutralKeys[] = {
    {"expert_count", 0},
    {"expert_used_count", 0},
    {"expert_shared_count", 0},
    {"expert_shared_feed_forward_length", 0},
    {"expert_weights_scale", 1},
    {"expert_gating_func", 1},  // softmax
    {"leading_dense_block_count", 0},
    {"interleave_moe_layer_step", 1},
    {"nextn_predict_layers", 0},
    {"use_parallel_residual", 0},
    {"attention.sliding_window", 0},
    {"attention.shared_kv_layers", 0},
    {"attn_logit_softcapping", 0},
    {"final_logit_softcapping", 0},
    {"embedding_scale", 1},
    {"residual_scale", 1},
    {"logit_scale", 1},
};

// Nothing: it is no single number.
std::optional<double> number_of(const ModelSource& file, const GgufEntry& entry) {
  if (const auto flag = file.get_bool(entry.key)) return *flag ? 1 : 0;
  if (const auto whole = file.get_u64(entry.key)) return static_cast<double>(*whole);
  if (const auto real = file.get_f32(entry.key)) return *real;
  return std::nullopt;
}

bool is_neutral(const ModelSource& file, const GgufEntry& entry, std::string_view name) {
  const auto it = std::ranges::find(kNeutralKeys, name, &NeutralKey::name);
  return it != std::end(kNeutralKeys) && number_of(file, entry) == it->value;
}

bool is_known_key(const Architecture& a, std::string_view key) {
  const auto in = [key](std::span<const std::string_view> keys) {
    return std::ranges::find(keys, key) != keys.end();
  };
  return in(kCommonKeys) || (a.encoder ? in(kEncoderKeys) : in(kDecoderKeys)) ||
         (a.windows && in(kWindowKeys)) || (a.window_pattern > 0 && in(kPatternKeys)) ||
         (a.local_rope_base > 0 && in(kLocalRopeKeys)) || (a.multipliers && in(kMultiplierKeys)) ||
         (a.score_cap > 0 && in(kCapKeys)) || (a.experts != HasExperts::no && in(kExpertKeys));
}

Result<const Architecture*> read_architecture(const ModelSource& file) {
  OCTAVO_TRY(const std::string_view name, file.get_string("general.architecture"));
  if (const Architecture* known = find_architecture(name)) return known;
  std::vector<std::string_view> names;
  for (const Architecture& a : architectures()) names.push_back(a.name);
  return fail(ErrorCode::unsupported,
              fmt::format("{}: architecture {} is not supported; supported are {}", file.file(),
                          quote(name), fmt::join(names, ", ")));
}

Result<void> refuse_unknown_keys(const ModelSource& file, const Architecture& a) {
  const std::string prefix = fmt::format("{}.", a.name);
  for (const GgufEntry& entry : file.metadata()) {
    if (!entry.key.starts_with(prefix)) continue;
    const std::string_view name = entry.key.substr(prefix.size());
    if (!is_known_key(a, name) && !is_neutral(file, entry, name))
      return fail(
          ErrorCode::unsupported,
          fmt::format(
              "{}: key {} is not supported: the model may compute something this program does not",
              file.file(), quote(entry.key)));
  }
  return {};
}

// Families without a cap may say so: their files have 0 there, or were refused.
Result<float> read_cap(const ConfigReader& reader, std::string_view name, float usual) {
  return usual > 0 ? reader.positive_or(name, usual) : Result<float>(0.0f);
}

Result<void> read_heads(const ModelSource& file, const ConfigReader& reader, ModelConfig& c) {
  OCTAVO_TRY(c.num_heads, reader.layer_dimension("attention.head_count", c.num_layers));
  OCTAVO_TRY(c.num_kv_heads,
             reader.layer_dimension_or("attention.head_count_kv", c.num_layers, c.num_heads));
  if (c.num_heads % c.num_kv_heads != 0)
    return fail(ErrorCode::corrupt_file, fmt::format("{}: {} query heads cannot share {} KV heads",
                                                     file.file(), c.num_heads, c.num_kv_heads));
  OCTAVO_TRY(c.head_dim, reader.dimension_or("attention.key_length", c.hidden_size / c.num_heads));
  OCTAVO_TRY(const int value_dim, reader.dimension_or("attention.value_length", c.head_dim));
  if (value_dim != c.head_dim)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: keys of {} and values of {} dims are not supported", file.file(),
                            c.head_dim, value_dim));
  const bool by_width = c.num_layers == c.architecture->layers_scaled_by_width;
  const int per_head = by_width ? c.hidden_size / c.num_heads : c.head_dim;
  OCTAVO_TRY(c.score_scale,
             reader.positive_or("attention.scale", 1.0f / std::sqrt(static_cast<float>(per_head))));
  OCTAVO_TRY(c.score_cap, read_cap(reader, "attn_logit_softcapping", c.architecture->score_cap));
  return {};
}

// The file gives what logits are divided by.
Result<void> read_scales(const ConfigReader& reader, ModelConfig& c) {
  if (c.architecture->scaled_embedding)
    c.embedding_scale = std::sqrt(static_cast<float>(c.hidden_size));
  OCTAVO_TRY(c.logit_cap, read_cap(reader, "final_logit_softcapping", c.architecture->logit_cap));
  if (!c.architecture->multipliers) return {};
  OCTAVO_TRY(c.embedding_scale, reader.positive_or("embedding_scale", 1));
  OCTAVO_TRY(c.residual_scale, reader.positive_or("residual_scale", 1));
  OCTAVO_TRY(const float divisor, reader.positive_or("logit_scale", 1));
  c.logit_scale = 1 / divisor;
  return {};
}

Result<void> read_windows(const ConfigReader& reader, ModelConfig& c) {
  OCTAVO_TRY(const auto given, reader.file().find_u64(reader.key("attention.sliding_window")));
  if (given.value_or(0) == 0 && c.architecture->window_pattern == 0) return {};
  OCTAVO_TRY(const int window, reader.dimension("attention.sliding_window"));
  OCTAVO_TRY(const int every, reader.dimension_or("attention.sliding_window_pattern",
                                                  c.architecture->window_pattern));
  c.windows = layer_windows(c.num_layers, window, every);
  return {};
}

// Where files with multipliers say so, positions are not rotated at all.
Result<void> refuse_no_rope(const ConfigReader& reader) {
  OCTAVO_TRY(const auto rotated, reader.file().find_bool(reader.key("rope.scaling.finetuned")));
  if (rotated.value_or(true)) return {};
  return reader.error("rope.scaling.finetuned",
                      "is false: attention without rotary positions is not supported",
                      ErrorCode::unsupported);
}

Result<void> read_rope(const ConfigReader& reader, ModelConfig& c) {
  OCTAVO_TRY(c.rope, read_rope_config(reader, c.head_dim, c.context_length));
  if (c.architecture->multipliers) OCTAVO_CHECK_OK(refuse_no_rope(reader));
  if (c.architecture->local_rope_base == 0) return {};
  c.local_rope = {.dims = c.rope.dims};
  OCTAVO_TRY(c.local_rope->base,
             reader.positive_or("rope.freq_base_swa", c.architecture->local_rope_base));
  return {};
}

Result<void> read_experts(const ModelSource& file, const ConfigReader& reader, ModelConfig& c) {
  OCTAVO_TRY(const auto count, file.find_u64(reader.key("expert_count")));
  if (count.value_or(0) == 0 && c.architecture->experts != HasExperts::all) return {};
  OCTAVO_TRY(c.experts.count, reader.dimension("expert_count", kMaxExperts));
  OCTAVO_TRY(c.experts.used, reader.dimension("expert_used_count", c.experts.count));
  return {};
}

Result<void> read_norm_eps(const ConfigReader& reader, ModelConfig& c) {
  const std::string_view name =
      c.architecture->encoder ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
  OCTAVO_TRY(c.norm_eps, reader.file().get_f32(reader.key(name)));
  if (!(c.norm_eps >= 0)) return reader.error(name, "must not be negative");
  return {};
}

// Whether tokens see those after them is the family's; a file may only agree.
Result<void> check_causal(const ConfigReader& reader, const ModelConfig& c) {
  OCTAVO_TRY(const auto causal, reader.file().find_bool(reader.key("attention.causal")));
  if (!causal || *causal != c.architecture->encoder) return {};
  return reader.error("attention.causal",
                      fmt::format("is {}, which this family is not computed with", *causal),
                      ErrorCode::unsupported);
}

// Where experts have a size of their own, that of the other key is not used.
Result<void> read_intermediate_size(const ConfigReader& reader, ModelConfig& c) {
  const bool own = c.experts.count > 0 && reader.has("expert_feed_forward_length");
  OCTAVO_TRY(c.intermediate_size,
             reader.layer_dimension(own ? "expert_feed_forward_length" : "feed_forward_length",
                                    c.num_layers));
  return {};
}

// The kernels work on 16 floats at a time and hold a head's values on the stack.
Result<void> check_kernel_limits(const ModelSource& file, const ModelConfig& c) {
  for (const auto& [what, value] : {std::pair{"embedding_length", c.hidden_size},
                                    {"feed-forward size", c.intermediate_size},
                                    {"head size", c.head_dim}})
    if (value % 16 != 0)
      return fail(ErrorCode::unsupported, fmt::format("{}: {} is {}; it must be a multiple of 16",
                                                      file.file(), what, value));
  if (c.head_dim > 256)
    return fail(ErrorCode::unsupported,
                fmt::format("{}: heads of {} dims are not supported; at most 256", file.file(),
                            c.head_dim));
  return {};
}

}  // namespace

Result<ModelConfig> read_model_config(const ModelSource& file) {
  ModelConfig c;
  OCTAVO_TRY(c.architecture, read_architecture(file));
  OCTAVO_CHECK_OK(refuse_unknown_keys(file, *c.architecture));
  const ConfigReader reader(file, c.architecture->name);
  OCTAVO_TRY(const auto name, file.find_string("general.name"));
  c.name = name.value_or("");
  OCTAVO_TRY(c.num_layers, reader.dimension("block_count", kMaxLayers));
  OCTAVO_TRY(c.hidden_size, reader.dimension("embedding_length"));
  OCTAVO_CHECK_OK(read_experts(file, reader, c));
  OCTAVO_CHECK_OK(read_intermediate_size(reader, c));
  OCTAVO_TRY(c.context_length, reader.dimension("context_length", 1 << 28));
  OCTAVO_CHECK_OK(read_heads(file, reader, c));
  OCTAVO_CHECK_OK(read_windows(reader, c));
  if (!c.architecture->encoder) OCTAVO_CHECK_OK(read_rope(reader, c));
  OCTAVO_CHECK_OK(read_scales(reader, c));
  OCTAVO_CHECK_OK(read_norm_eps(reader, c));
  OCTAVO_CHECK_OK(check_causal(reader, c));
  OCTAVO_CHECK_OK(check_kernel_limits(file, c));
  const TensorView* embedding = file.find_tensor("token_embd.weight");
  if (!embedding)
    return fail(
        ErrorCode::corrupt_file,
        fmt::format("{}: tensor 'token_embd.weight' is missing{}", file.file(),
                    file.tensors().empty() ? "; the file holds a vocabulary and no model" : ""));
  if (embedding->rows() < 1 || embedding->rows() > (1 << 24))
    return fail(ErrorCode::corrupt_file,
                fmt::format("{}: 'token_embd.weight' has {} rows", file.file(), embedding->rows()));
  c.vocab_size = static_cast<int>(embedding->rows());
  c.tied_head = file.find_tensor("output.weight") == nullptr;
  return c;
}

KvShape kv_shape(const ModelConfig& c) {
  return {.num_layers = c.num_kv_layers(),
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_kv_heads,
          .head_dim = c.head_dim,
          .windows = c.windows};
}

KvShape kv_shape(const HfConfig& c) {
  return {.num_layers = static_cast<int>(c.num_hidden_layers),
          .num_heads = static_cast<int>(c.num_attention_heads),
          .num_kv_heads = static_cast<int>(c.num_key_value_heads),
          .head_dim = static_cast<int>(c.head_dim),
          .windows = std::vector<int>(c.windows.begin(), c.windows.end())};
}

std::vector<int> layer_windows(int layers, int window, int every) {
  std::vector<int> windows;
  for (int i = 1; i <= layers; ++i) windows.push_back(every > 0 && i % every == 0 ? 0 : window);
  return windows;
}

}  // namespace octavo
