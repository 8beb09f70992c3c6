#include "formats/hf_families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "formats/hf_bert.h"

namespace octavo {
namespace {

constexpr std::array kFamilies = {
    HfFamily{.model_type = "llama",
             .architecture = "llama",
             .permuted_qk = true,
             .biases_by_config = true,
             .rope_theta = 10000},
    HfFamily{
        .model_type = "mistral", .architecture = "llama", .permuted_qk = true, .rope_theta = 10000},
    HfFamily{.model_type = "mixtral",
             .architecture = "llama",
             .permuted_qk = true,
             .rope_theta = 1000000},
    HfFamily{.model_type = "qwen2", .architecture = "qwen2", .qkv_bias = true, .rope_theta = 10000},
    HfFamily{.model_type = "qwen3", .architecture = "qwen3", .rope_theta = 10000},
    HfFamily{.model_type = "qwen3_moe", .architecture = "qwen3moe", .rope_theta = 10000},
    HfFamily{.model_type = "phi3", .architecture = "phi3", .rope_theta = 10000},
    HfFamily{
        .model_type = "olmo2", .architecture = "olmo2", .post_norms = true, .rope_theta = 10000},
    HfFamily{.model_type = "granite",
             .architecture = "granite",
             .permuted_qk = true,
             .rope_theta = 10000},
    HfFamily{.model_type = "gemma2",
             .architecture = "gemma2",
             .norms_from_zero = true,
             .activation = "gelu_pytorch_tanh",
             .post_norms = true,
             .tied_by_default = true,
             .score_width = 256,
             .rope_theta = 10000},
    HfFamily{.model_type = "gemma3_text",
             .architecture = "gemma3",
             .norms_from_zero = true,
             .activation = "gelu_pytorch_tanh",
             .post_norms = true,
             .tied_by_default = true,
             .score_width = 256,
             .rope_theta = 1000000},
    HfFamily{.model_type = "bert", .architecture = "bert", .encoder = true},
};

// '#' is a number: the same one of the layer on both sides, then on the left the expert.
struct Name {
  enum class When { always, post_norms, no_post_norms };

  std::string_view hf, gguf;
  When when = When::always;
};

using enum Name::When;
constexpr std::array kNames = {
    Name{"model.embed_tokens.weight", "token_embd.weight"},
    Name{"model.norm.weight", "output_norm.weight"},
    Name{"lm_head.weight", "output.weight"},
    Name{"model.layers.#.input_layernorm.weight", "blk.#.attn_norm.weight"},
    Name{"model.layers.#.self_attn.q_proj.weight", "blk.#.attn_q.weight"},
    Name{"model.layers.#.self_attn.k_proj.weight", "blk.#.attn_k.weight"},
    Name{"model.layers.#.self_attn.v_proj.weight", "blk.#.attn_v.weight"},
    Name{"model.layers.#.self_attn.q_proj.bias", "blk.#.attn_q.bias"},
    Name{"model.layers.#.self_attn.k_proj.bias", "blk.#.attn_k.bias"},
    Name{"model.layers.#.self_attn.v_proj.bias", "blk.#.attn_v.bias"},
    Name{"model.layers.#.self_attn.qkv_proj.weight", "blk.#.attn_qkv.weight"},
    Name{"model.layers.#.self_attn.o_proj.weight", "blk.#.attn_output.weight"},
    Name{"model.layers.#.self_attn.o_proj.bias", "blk.#.attn_output.bias"},
    Name{"model.layers.#.self_attn.q_norm.weight", "blk.#.attn_q_norm.weight"},
    Name{"model.layers.#.self_attn.k_norm.weight", "blk.#.attn_k_norm.weight"},
    Name{"model.layers.#.post_attention_layernorm.weight", "blk.#.ffn_norm.weight", no_post_norms},
    Name{"model.layers.#.post_attention_layernorm.weight", "blk.#.post_attention_norm.weight",
         post_norms},
    Name{"model.layers.#.pre_feedforward_layernorm.weight", "blk.#.ffn_norm.weight", post_norms},
    Name{"model.layers.#.post_feedforward_layernorm.weight", "blk.#.post_ffw_norm.weight",
         post_norms},
    Name{"model.layers.#.mlp.gate_proj.weight", "blk.#.ffn_gate.weight"},
    Name{"model.layers.#.mlp.up_proj.weight", "blk.#.ffn_up.weight"},
    Name{"model.layers.#.mlp.gate_up_proj.weight", "blk.#.ffn_up.weight"},
    Name{"model.layers.#.mlp.down_proj.weight", "blk.#.ffn_down.weight"},
    Name{"model.layers.#.mlp.gate_proj.bias", "blk.#.ffn_gate.bias"},
    Name{"model.layers.#.mlp.up_proj.bias", "blk.#.ffn_up.bias"},
    Name{"model.layers.#.mlp.down_proj.bias", "blk.#.ffn_down.bias"},
    Name{"model.layers.#.mlp.gate.weight", "blk.#.ffn_gate_inp.weight"},
    Name{"model.layers.#.mlp.experts.#.gate_proj.weight", "blk.#.ffn_gate_exps.weight"},
    Name{"model.layers.#.mlp.experts.#.up_proj.weight", "blk.#.ffn_up_exps.weight"},
    Name{"model.layers.#.mlp.experts.#.down_proj.weight", "blk.#.ffn_down_exps.weight"},
    Name{"model.layers.#.block_sparse_moe.gate.weight", "blk.#.ffn_gate_inp.weight"},
    Name{"model.layers.#.block_sparse_moe.experts.#.w1.weight", "blk.#.ffn_gate_exps.weight"},
    Name{"model.layers.#.block_sparse_moe.experts.#.w3.weight", "blk.#.ffn_up_exps.weight"},
    Name{"model.layers.#.block_sparse_moe.experts.#.w2.weight", "blk.#.ffn_down_exps.weight"},
};

// Old checkpoints carry the frequencies that follow from rope_theta.
constexpr std::string_view kDerived = "model.layers.#.self_attn.rotary_emb.inv_freq";

// The numbers at the '#' of a pattern, if the name matches it.
struct Numbers {
  std::array<int, 2> at{};
  size_t count = 0;
};

std::optional<Numbers> match(std::string_view pattern, std::string_view name) {
  Numbers numbers;
  while (!pattern.empty()) {
    if (pattern.front() != '#') {
      const size_t plain = std::min(pattern.find('#'), pattern.size());
      if (!name.starts_with(pattern.substr(0, plain))) return std::nullopt;
      pattern.remove_prefix(plain);
      name.remove_prefix(plain);
      continue;
    }
    int number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    const auto digits = static_cast<size_t>(end - name.data());
    // Of each number one spelling counts, so that no two names mean one tensor.
    if (error != std::errc{} || number < 0 || (digits > 1 && name.front() == '0'))
      return std::nullopt;
    numbers.at[numbers.count++] = number;
    name.remove_prefix(digits);
    pattern.remove_prefix(1);
  }
  return name.empty() ? std::optional(numbers) : std::nullopt;
}

std::string fill(std::string_view pattern, int number) {
  const size_t mark = pattern.find('#');
  if (mark == std::string_view::npos) return std::string(pattern);
  return fmt::format("{}{}{}", pattern.substr(0, mark), number, pattern.substr(mark + 1));
}

bool applies(const Name& name, const HfFamily& family) {
  return name.when == Name::When::always ||
         (name.when == Name::When::post_norms) == family.post_norms;
}

}  // namespace

std::span<const HfFamily> hf_families() { return kFamilies; }

const HfFamily* find_hf_family(std::string_view model_type) {
  const auto it = std::find_if(kFamilies.begin(), kFamilies.end(),
                               [&](const HfFamily& f) { return f.model_type == model_type; });
  return it == kFamilies.end() ? nullptr : &*it;
}

std::optional<std::string> text_part_name(std::string_view hf_name) {
  for (const std::string_view prefix : {"vision_tower.", "multi_modal_projector.",
                                        "model.vision_tower.", "model.multi_modal_projector."})
    if (hf_name.starts_with(prefix)) return std::nullopt;
  constexpr std::string_view kOuter = "language_model.", kInner = "model.language_model.";
  if (hf_name.starts_with(kInner)) return fmt::format("model.{}", hf_name.substr(kInner.size()));
  if (hf_name.starts_with(kOuter)) hf_name.remove_prefix(kOuter.size());
  return std::string(hf_name);
}

std::optional<HfTensorName> gguf_name_of(const HfFamily& family, std::string_view hf_name) {
  if (family.encoder) return bert_gguf_name_of(hf_name);
  if (match(kDerived, hf_name)) return HfTensorName{.name = {}, .ignored = true};
  for (const Name& name : kNames) {
    if (!applies(name, family)) continue;
    const auto numbers = match(name.hf, hf_name);
    if (!numbers) continue;
    HfTensorName found{.name = fill(name.gguf, numbers->at[0])};
    if (numbers->count == 2) found.expert = numbers->at[1];
    return found;
  }
  return std::nullopt;
}

std::string hf_name_of(const HfFamily& family, std::string_view gguf_name) {
  if (family.encoder) return bert_hf_name_of(gguf_name);
  for (const Name& name : kNames) {
    if (!applies(name, family)) continue;
    if (const auto numbers = match(name.gguf, gguf_name)) return fill(name.hf, numbers->at[0]);
  }
  return std::string(gguf_name);
}

}  // namespace octavo
