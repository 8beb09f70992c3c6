#include "formats/hf_metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "formats/hf_bert.h"
#include "formats/hf_config.h"
#include "formats/hf_fields.h"
#include "formats/hf_rope.h"
#include "formats/hf_text_config.h"
#include "formats/json_section.h"
#include "formats/quote.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr std::string_view kReadFields[] = {"num_hidden_layers",
                                            "hidden_size",
                                            "num_attention_heads",
                                            "num_key_value_heads",
                                            "head_dim",
                                            "max_position_embeddings",
                                            "vocab_size",
                                            "intermediate_size",
                                            "rms_norm_eps",
                                            "tie_word_embeddings",
                                            "sliding_window",
                                            "use_sliding_window",
                                            "max_window_layers",
                                            "layer_types",
                                            "sliding_window_pattern",
                                            "_sliding_window_pattern",
                                            "rope_theta",
                                            "rope_scaling",
                                            "rope_parameters",
                                            "rope_local_base_freq",
                                            "partial_rotary_factor",
                                            "original_max_position_embeddings",
                                            "is_matryoshka",
                                            "matryoshka_dimensions",
                                            "num_local_experts",
                                            "num_experts",
                                            "num_experts_per_tok",
                                            "moe_intermediate_size",
                                            "query_pre_attn_scalar",
                                            "attn_logit_softcapping",
                                            "final_logit_softcapping",
                                            "embedding_multiplier",
                                            "attention_multiplier",
                                            "residual_multiplier",
                                            "logits_scaling",
                                            "quantization_config"};

// Fields that change what the model computes, and the only value of each that is supported.
constexpr HfFixedField kFixed[] = {
    {"decoder_sparse_step", "1"},
    {"mlp_only_layers", "[]"},
    {"norm_topk_prob", "true"},
};

// Numbers that scale or bound what the model computes. A family either has all of its own or, as
// far as this program goes, is another model.
struct Factor {
  const char* field;
  std::string_view key;
  std::string_view needed_by;          // the model_type
  std::optional<double> neutral = {};  // what other families may say: the value without effect
};
constexpr Factor kFactors[] = {
    {"embedding_multiplier", "embedding_scale", "granite", 1},
    {"attention_multiplier", "attention.scale", "granite"},
    {"residual_multiplier", "residual_scale", "granite", 1},
    {"logits_scaling", "logit_scale", "granite", 1},
    {"attn_logit_softcapping", "attn_logit_softcapping", "gemma2", 0},
    {"final_logit_softcapping", "final_logit_softcapping", "gemma2", 0},
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

  Result<void> check_fields() {
    const std::string activation = fmt::format("\"{}\"", out_.family->activation);
    std::vector<std::string_view> read(std::begin(kReadFields), std::end(kReadFields));
    std::vector<HfFixedField> fixed(std::begin(kFixed), std::end(kFixed));
    fixed.push_back({"hidden_act", activation});
    fixed.push_back({"hidden_activation", activation});
    for (const std::string_view bias : {"attention_bias", "mlp_bias"})
      if (out_.family->biases_by_config)
        read.push_back(bias);
      else
        fixed.push_back({bias, "false"});
    return check_hf_fields(section_, read, fixed, out_.notes);
  }

  Result<void> read_sizes() {
    OCTAVO_TRY(const auto intermediate,
               section_.find_layer_number("intermediate_size", config_.num_hidden_layers));
    if (!intermediate) return section_.error("intermediate_size", "is missing");
    OCTAVO_TRY(const auto eps, section_.find_real("rms_norm_eps"));
    if (!eps) return section_.error("rms_norm_eps", "is missing");
    if (!config_.max_position_embeddings)
      return section_.error("max_position_embeddings", "is missing");
    number("block_count", config_.num_hidden_layers);
    number("context_length", *config_.max_position_embeddings);
    number("embedding_length", config_.hidden_size);
    number("feed_forward_length", *intermediate);
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
      const bool needed = f.needed_by == out_.family->model_type;
      if (!value && needed) return section_.error(f.field, "is missing");
      if (value && (needed || value != f.neutral)) OCTAVO_CHECK_OK(factor(f.key, f.field, *value));
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
    OCTAVO_TRY(const auto count,
               section_.one_number("num_local_experts", "num_experts", 0, kMaxExperts));
    OCTAVO_TRY(const auto used, section_.find_number("num_experts_per_tok", 0, kMaxExperts));
    if (count.value_or(0) == 0 && used.value_or(0) == 0) return {};
    if (count.value_or(0) == 0) return section_.error("num_local_experts", "is missing");
    if (used.value_or(0) == 0) return section_.error("num_experts_per_tok", "is missing");
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
