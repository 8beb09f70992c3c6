#include "formats/hf_metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "formats/hf_bert.h"
#include "formats/hf_config.h"
#include "formats/hf_rope.h"
#include "formats/hf_text_config.h"
#include "formats/json_section.h"
#include "formats/quote.h"

namespace octavo {
namespace {

using nlohmann::json;

// Fields that are read, or that have no effect on what the model computes. Any other may have, so a
// file that has one is refused.
constexpr std::string_view kKnownFields[] = {
    "model_type", "num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads",
    "head_dim", "max_position_embeddings", "vocab_size", "dtype", "torch_dtype",
    "intermediate_size", "rms_norm_eps", "tie_word_embeddings", "sliding_window",
    "use_sliding_window", "max_window_layers", "layer_types", "sliding_window_pattern",
    "_sliding_window_pattern", "rope_theta", "rope_scaling", "rope_parameters",
    "rope_local_base_freq", "partial_rotary_factor", "original_max_position_embeddings",
    "is_matryoshka", "matryoshka_dimensions", "num_local_experts", "num_experts",
    "num_experts_per_tok", "moe_intermediate_size", "query_pre_attn_scalar",
    "attn_logit_softcapping", "final_logit_softcapping", "embedding_multiplier",
    "attention_multiplier", "residual_multiplier", "logits_scaling",
    // Without effect.
    "architectures", "transformers_version", "use_cache", "bos_token_id", "eos_token_id",
    "pad_token_id", "unk_token_id", "initializer_range", "attention_dropout", "embd_pdrop",
    "resid_pdrop", "output_attentions", "output_hidden_states", "output_router_logits",
    "router_aux_loss_coef", "router_jitter_noise", "pretraining_tp", "_name_or_path", "auto_map",
    "cache_implementation", "_attn_implementation", "_model_name_or_path", "is_llama_config",
    "transformers.js_config", "unsloth_version", "unsloth_fixed", "max_sequence_length",
    "model_max_length", "id2label", "label2id", "return_dict", "torchscript", "tokenizer_class"};

// Fields that change what the model computes, and the only value of each that is supported.
struct Fixed {
  std::string_view field;
  std::string_view value;  // JSON
};
constexpr Fixed kFixed[] = {
    {"rope_interleaved", "false"}, {"use_bidirectional_attention", "false"},
    {"decoder_sparse_step", "1"},  {"mlp_only_layers", "[]"},
    {"norm_topk_prob", "true"},
};

// Numbers that scale or bound what the model computes. A family either has all of its own or, as
// far as this program goes, is another model.
struct Factor {
  const char* field;
  std::string_view key;
  std::string_view needed_by;  // the model_type
};
constexpr Factor kFactors[] = {
    {"embedding_multiplier", "embedding_scale", "granite"},
    {"attention_multiplier", "attention.scale", "granite"},
    {"residual_multiplier", "residual_scale", "granite"},
    {"logits_scaling", "logit_scale", "granite"},
    {"attn_logit_softcapping", "attn_logit_softcapping", "gemma2"},
    {"final_logit_softcapping", "final_logit_softcapping", "gemma2"},
};

constexpr int64_t kMaxExperts = 4096;

class Translator {
 public:
  Translator(const HfTextConfig& text, const std::string& name, const HfConfig& config,
             const HfFamily& family)
      : section_(text.object, name, text.prefix), config_(config) {
    out_.family = &family;
    out_.multimodal = !text.whole.empty();
  }

  Result<HfMetadata> run(std::string_view model_name) && {
    OCTAVO_CHECK_OK(check_fields());
    out_.keys.string("general.architecture", out_.family->architecture);
    out_.keys.string("general.name", model_name);
    OCTAVO_CHECK_OK(read_sizes());
    OCTAVO_CHECK_OK(read_attention());
    OCTAVO_CHECK_OK(read_factors());
    OCTAVO_CHECK_OK(read_windows());
    OCTAVO_CHECK_OK(read_experts());
    OCTAVO_CHECK_OK(read_quantization());
    OCTAVO_CHECK_OK(read_biases());
    OCTAVO_CHECK_OK(read_hf_rope(section_, config_, out_));
    OCTAVO_TRY(const auto tied, section_.find_bool("tie_word_embeddings"));
    out_.tied_head = tied.value_or(out_.family->tied_by_default);
    return std::move(out_);
  }

 private:
  std::string key(std::string_view rest) const {
    return fmt::format("{}.{}", out_.family->architecture, rest);
  }

  void number(std::string_view rest, int64_t value) {
    out_.keys.u32(key(rest), static_cast<uint32_t>(value));
  }

  Result<void> read_biases() {
    OCTAVO_TRY(const auto attention, section_.find_bool("attention_bias"));
    OCTAVO_TRY(const auto mlp, section_.find_bool("mlp_bias"));
    out_.attention_bias = attention.value_or(false);
    out_.mlp_bias = mlp.value_or(false);
    return {};
  }

  Result<void> read_quantization() {
    const json* quantization = section_.find("quantization_config");
    if (!quantization) return {};
    OCTAVO_TRY(out_.quantization, read_hf_quantization(*quantization, section_.file()));
    return {};
  }

  Result<void> check_fields() const {
    for (const auto& [field, value] : section_.object().items()) {
      if (value.is_null()) continue;
      if (field == "quantization_config") continue;
      OCTAVO_CHECK_OK(check_field(field, value));
    }
    return {};
  }

  Result<void> check_field(const std::string& field, const json& value) const {
    if (field == "hidden_act" || field == "hidden_activation")
      return check_fixed(field, value, fmt::format("\"{}\"", out_.family->activation));
    if (field == "attention_bias" || field == "mlp_bias")
      return out_.family->biases_by_config ? Result<void>() : check_fixed(field, value, "false");
    for (const Fixed& fixed : kFixed)
      if (fixed.field == field) return check_fixed(field, value, fixed.value);
    if (std::find(std::begin(kKnownFields), std::end(kKnownFields), field) !=
        std::end(kKnownFields))
      return {};
    return fail(ErrorCode::unsupported,
                fmt::format("{}: field {} is not supported: the model may compute something this "
                            "program does not",
                            section_.file(), quote(field)));
  }

  Result<void> check_fixed(const std::string& field, const json& value,
                           std::string_view supported) const {
    if (value == json::parse(supported)) return {};
    return section_.error(
        field, fmt::format("is {}; only {} is supported", quote(value.dump()), supported),
        ErrorCode::unsupported);
  }

  Result<void> read_sizes() {
    OCTAVO_TRY(const int64_t intermediate, section_.number("intermediate_size"));
    OCTAVO_TRY(const auto eps, section_.find_real("rms_norm_eps"));
    if (!eps) return section_.error("rms_norm_eps", "is missing");
    if (!config_.max_position_embeddings)
      return section_.error("max_position_embeddings", "is missing");
    number("block_count", config_.num_hidden_layers);
    number("context_length", *config_.max_position_embeddings);
    number("embedding_length", config_.hidden_size);
    number("feed_forward_length", intermediate);
    out_.keys.f32(key("attention.layer_norm_rms_epsilon"), static_cast<float>(*eps));
    if (config_.vocab_size) number("vocab_size", *config_.vocab_size);
    return {};
  }

  Result<void> read_attention() {
    number("attention.head_count", config_.num_attention_heads);
    number("attention.head_count_kv", config_.num_key_value_heads);
    number("attention.key_length", config_.head_dim);
    number("attention.value_length", config_.head_dim);
    out_.head_dim = static_cast<int>(config_.head_dim);
    out_.num_layers = static_cast<int>(config_.num_hidden_layers);
    return {};
  }

  Result<void> factor(std::string_view rest, const char* field, double value) {
    if (!(value > 0 && std::isfinite(value))) return section_.error(field, "must be positive");
    out_.keys.f32(key(rest), static_cast<float>(value));
    return {};
  }

  Result<void> read_factors() {
    for (const Factor& f : kFactors) {
      OCTAVO_TRY(const auto value, section_.find_real(f.field));
      if (value) OCTAVO_CHECK_OK(factor(f.key, f.field, *value));
      if (!value && f.needed_by == out_.family->model_type)
        return section_.error(f.field, "is missing");
    }
    const auto head_dim = static_cast<double>(config_.head_dim);
    const double usual = out_.family->score_width > 0 ? out_.family->score_width : head_dim;
    OCTAVO_TRY(const auto width, section_.find_real("query_pre_attn_scalar"));
    if (width.value_or(usual) == head_dim) return {};
    return factor("attention.scale", "query_pre_attn_scalar", 1 / std::sqrt(width.value_or(usual)));
  }

  // GGUF says: one window, and that every N-th layer has none.
  Result<void> read_windows() {
    const auto& windows = config_.windows;
    const auto first = std::find_if(windows.begin(), windows.end(), [](int64_t w) { return w; });
    if (first == windows.end()) return {};
    const auto global = std::find(windows.begin(), windows.end(), 0);
    // Past the end if there is none.
    const int64_t every = global - windows.begin() + 1;
    for (size_t i = 0; i < windows.size(); ++i)
      if (windows[i] != ((static_cast<int64_t>(i) + 1) % every == 0 ? 0 : *first))
        return section_.error("layer_types",
                              "(or what stands for it) does not make every N-th layer a global "
                              "one, which alone is supported",
                              ErrorCode::unsupported);
    number("attention.sliding_window", *first);
    if (global != windows.end() || out_.family->post_norms)
      number("attention.sliding_window_pattern", every);
    return {};
  }

  Result<void> read_experts() {
    OCTAVO_TRY(auto count, section_.find_number("num_local_experts", 1, kMaxExperts));
    if (!count) {
      OCTAVO_TRY(count, section_.find_number("num_experts", 1, kMaxExperts));
    }
    OCTAVO_TRY(const auto used, section_.find_number("num_experts_per_tok", 1, kMaxExperts));
    if (!count && !used) return {};
    if (!count) return section_.error("num_local_experts", "is missing");
    if (!used) return section_.error("num_experts_per_tok", "is missing");
    if (*used > *count)
      return section_.error("num_experts_per_tok",
                            fmt::format("is {}, of {} experts", *used, *count));
    out_.num_experts = static_cast<int>(*count);
    number("expert_count", *count);
    number("expert_used_count", *used);
    OCTAVO_TRY(const auto width, section_.find_number("moe_intermediate_size"));
    if (width) number("expert_feed_forward_length", *width);
    return {};
  }

  JsonSection section_;
  const HfConfig& config_;
  HfMetadata out_;
};

}  // namespace

Result<HfMetadata> read_hf_metadata(std::string_view text, const std::string& name,
                                    std::string_view model_name) {
  OCTAVO_TRY(const HfConfig config, parse_hf_config(text, name));
  OCTAVO_TRY(const HfTextConfig text_config, parse_hf_text_config(text, name));
  const std::string& whole = text_config.whole;
  // Of models of images and text, those whose text part is an ordinary model.
  const bool known_whole = whole.empty() || whole == "gemma3";
  const HfFamily* family = known_whole ? find_hf_family(config.model_type) : nullptr;
  if (!family) {
    std::vector<std::string_view> known;
    for (const HfFamily& f : hf_families()) known.push_back(f.model_type);
    return fail(
        ErrorCode::unsupported,
        fmt::format("{}: model_type {} is not supported{}; supported are {}", name,
                    quote(whole.empty() ? config.model_type : whole),
                    whole.empty() ? "" : " (a model of text and images)", fmt::join(known, ", ")));
  }
  OCTAVO_TRY(HfMetadata out,
             family->encoder
                 ? read_bert_metadata(text_config.object, name, config, *family, model_name)
                 : Translator(text_config, name, config, *family).run(model_name));
  OCTAVO_TRY(const auto cut, JsonSection(text_config.object, name, "").find_bool("is_matryoshka"));
  if (cut) out.keys.boolean(fmt::format("{}.matryoshka", family->architecture), *cut);
  return out;
}

}  // namespace octavo
