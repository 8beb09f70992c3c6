#include "formats/hf_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/quote.h"

namespace octavo {
namespace {

using nlohmann::json;

// Without effect on what a model computes from tokens: they are about training, generation, other
// programs, or who made the file.
constexpr std::string_view kMetadata[] = {
    "architectures", "auto_map", "model_type", "transformers_version", "dtype", "torch_dtype",
    "_name_or_path", "_model_name_or_path", "name_or_path", "_num_labels", "id2label", "label2id",
    "num_labels", "problem_type", "finetuning_task", "task_specific_params", "tokenizer_class",
    "model_max_length", "max_sequence_length", "max_seq_length", "max_length", "language",
    "is_llama_config", "transformers.js_config", "sentence_transformers",
    // How it is run elsewhere.
    "use_cache", "cache_implementation", "attn_implementation", "_attn_implementation",
    "_attn_implementation_autoset", "_flash_attn_2_enabled", "use_flash_attn",
    "use_flash_attention", "use_bfloat16", "return_dict", "return_dict_in_generate", "torchscript",
    "output_attentions", "output_hidden_states", "output_past", "output_scores",
    "output_router_logits", "pretraining_tp", "gradient_checkpointing", "tf_legacy_loss",
    "attention_softmax_in_fp32", "xla_device", "is_decoder",
    // Training.
    "initializer_range", "attention_dropout", "attention_probs_dropout_prob", "hidden_dropout",
    "hidden_dropout_prob", "classifier_dropout", "embd_pdrop", "resid_pdrop", "attn_pdrop",
    "router_aux_loss_coef", "router_z_loss_coef", "router_jitter_noise", "neftune_noise_alpha",
    "unsloth_version", "unsloth_fixed", "unsloth_training_method",
    // Generation, as old files have it here; generation_config.json is what counts.
    "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "cls_token_id",
    "mask_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id",
    "do_sample", "temperature", "top_k", "top_p", "min_p", "typical_p", "num_beams",
    "num_beam_groups", "diversity_penalty", "repetition_penalty", "length_penalty",
    "encoder_no_repeat_ngram_size", "no_repeat_ngram_size", "bad_words_ids", "min_length",
    "early_stopping", "num_return_sequences", "remove_invalid_values", "suppress_tokens",
    "begin_suppress_tokens", "exponential_decay_length_penalty", "prefix", "padding_side"};

// What any model has that is described without them.
constexpr HfFixedField kNeutral[] = {
    {"use_mrope", "false"},
    {"rope_interleaved", "false"},
    {"use_rope", "true"},
    {"rotary_pct", "1"},
    {"full_attn_mod", "1"},
    {"interpolate_factor", "1"},
    {"lm_head_bias", "false"},
    {"attention_out_bias", "false"},
    {"use_bias", "false"},
    {"add_bias_linear", "false"},
    {"qk_layernorm", "false"},
    {"alibi", "false"},
    {"use_alibi", "false"},
    {"parallel_attn", "false"},
    {"use_parallel_residual", "false"},
    {"use_bidirectional_attention", "false"},
    {"is_encoder_decoder", "false"},
    {"tie_encoder_decoder", "false"},
    {"add_cross_attention", "false"},
    {"chunk_size_feed_forward", "0"},
    {"pruned_heads", "{}"},
    {"attn_temperature_tuning", "false"},
    {"num_nextn_predict_layers", "0"},
    {"first_k_dense_replace", "0"},
    {"moe_layer_freq", "1"},
    {"n_shared_experts", "0"},
    {"num_shared_experts", "0"},
    {"shared_expert_intermediate_size", "0"},
    {"routed_scaling_factor", "1"},
    {"scoring_func", "\"softmax\""},
    {"n_group", "1"},
    {"topk_group", "1"},
};

bool is_in(std::string_view field, std::span<const std::string_view> names) {
  return std::ranges::find(names, field) != names.end();
}

const HfFixedField* find(std::string_view field, std::span<const HfFixedField> fixed) {
  const auto it = std::ranges::find(fixed, field, &HfFixedField::field);
  return it == fixed.end() ? nullptr : &*it;
}

// A name of something that no forward reads: private to the program that wrote it, or about
// training.
bool sounds_like_metadata(std::string_view field) {
  constexpr std::string_view kWords[] = {"dropout",
                                         "pdrop",
                                         "loss",
                                         "version",
                                         "training",
                                         "trainer",
                                         "unsloth",
                                         "gradient",
                                         "dataset",
                                         "license",
                                         "flash_attn",
                                         "initializer",
                                         "attn_implementation"};
  return field.starts_with('_') || field.ends_with("_token_id") ||
         std::ranges::any_of(kWords, [&](std::string_view word) {
           return field.find(word) != std::string_view::npos;
         });
}

}  // namespace

Result<void> check_hf_fields(const JsonSection& section, std::span<const std::string_view> read,
                             std::span<const HfFixedField> fixed, std::vector<std::string>& notes) {
  std::vector<std::string> passed_over;
  for (const auto& [field, value] : section.object().items()) {
    if (value.is_null() || is_in(field, read)) continue;
    const HfFixedField* known = find(field, fixed);
    if (!known) known = find(field, kNeutral);
    if (known && value == json::parse(known->value)) continue;
    if (known)
      return section.error(
          field, fmt::format("is {}; only {} is supported", quote(value.dump()), known->value),
          ErrorCode::unsupported);
    if (is_in(field, kMetadata)) continue;
    if (!sounds_like_metadata(field))
      return fail(ErrorCode::unsupported,
                  fmt::format("{}: field {} is not supported: the model may compute something this "
                              "program does not",
                              section.file(), quote(section.prefix() + field)));
    passed_over.push_back(quote(field));
  }
  if (!passed_over.empty())
    notes.push_back(fmt::format("{}: not known, and passed over by their names: {}", section.file(),
                                fmt::join(passed_over, ", ")));
  return {};
}

}  // namespace octavo
