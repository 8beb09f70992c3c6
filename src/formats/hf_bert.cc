#include "formats/hf_bert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "formats/hf_fields.h"
#include "formats/json_section.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr std::string_view kReadFields[] = {
    "num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size",
    "layer_norm_eps", "max_position_embeddings", "vocab_size", "type_vocab_size", "is_matryoshka",
    "matryoshka_dimensions",
    // Of the parts on top, which are not run.
    "tie_word_embeddings", "directionality", "pooler_fc_size", "pooler_num_attention_heads",
    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"};

// Fields of which one value alone is supported.
constexpr HfFixedField kFixed[] = {{"hidden_act", R"("gelu")"},
                                   {"position_embedding_type", R"("absolute")"},
                                   {"is_decoder", "false"}};

// Stems, to which ".weight" or ".bias" is added.
struct Name {
  std::string_view hf, gguf;
};
constexpr std::array kNames = {
    Name{"embeddings.word_embeddings", "token_embd"},
    Name{"embeddings.position_embeddings", "position_embd"},
    Name{"embeddings.token_type_embeddings", "token_types"},
    Name{"embeddings.LayerNorm", "token_embd_norm"},
};
constexpr std::array kLayerNames = {
    Name{"attention.self.query", "attn_q"},
    Name{"attention.self.key", "attn_k"},
    Name{"attention.self.value", "attn_v"},
    Name{"attention.output.dense", "attn_output"},
    Name{"attention.output.LayerNorm", "attn_output_norm"},
    Name{"intermediate.dense", "ffn_up"},
    Name{"output.dense", "ffn_down"},
    Name{"output.LayerNorm", "layer_output_norm"},
};
constexpr std::string_view kIgnored[] = {"embeddings.position_ids", "pooler.", "cls.",
                                         "classifier."};
constexpr std::string_view kHfLayer = "encoder.layer.", kGgufLayer = "blk.";

// "PREFIX" number "." stem, one spelling of each number.
struct Layered {
  int layer;
  std::string_view stem;
};
std::optional<Layered> split_layer(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  int layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  const auto digits = static_cast<size_t>(end - name.data());
  const bool proper = error == std::errc{} && layer >= 0 && (digits == 1 || name[0] != '0');
  if (!proper || digits >= name.size() || name[digits] != '.') return std::nullopt;
  return Layered{layer, name.substr(digits + 1)};
}

// The other side's stem; nothing: there is no such row.
std::optional<std::string_view> look_up(std::span<const Name> names, std::string_view stem,
                                        std::string_view Name::*from, std::string_view Name::*to) {
  const auto it = std::ranges::find(names, stem, from);
  return it == names.end() ? std::nullopt : std::optional((*it).*to);
}

std::optional<std::string> translate(std::string_view name, std::string_view Name::*from,
                                     std::string_view from_layer, std::string_view Name::*to,
                                     std::string_view to_layer) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view stem = name.substr(0, dot), end = name.substr(dot);
  if (end != ".weight" && end != ".bias") return std::nullopt;
  if (const auto plain = look_up(kNames, stem, from, to)) return fmt::format("{}{}", *plain, end);
  const auto layered = split_layer(stem, from_layer);
  if (!layered) return std::nullopt;
  const auto found = look_up(kLayerNames, layered->stem, from, to);
  if (!found) return std::nullopt;
  return fmt::format("{}{}.{}{}", to_layer, layered->layer, *found, end);
}

}  // namespace

Result<HfMetadata> read_bert_metadata(const json& root, const std::string& name,
                                      const HfConfig& config, const HfFamily& family,
                                      std::string_view model_name) {
  const JsonSection section(root, name, "");
  HfMetadata out;
  OCTAVO_CHECK_OK(check_hf_fields(section, kReadFields, kFixed, out.notes));
  out.family = &family;
  out.tied_head = true;  // there is none
  out.head_dim = static_cast<int>(config.head_dim);
  out.keys.string("general.architecture", family.architecture);
  out.keys.string("general.name", model_name);
  OCTAVO_TRY(const int64_t intermediate, section.number("intermediate_size"));
  OCTAVO_TRY(const auto eps, section.find_real("layer_norm_eps"));
  if (!config.max_position_embeddings)
    return section.error("max_position_embeddings", "is missing");
  const std::pair<std::string_view, int64_t> numbers[] = {
      {"block_count", config.num_hidden_layers},
      {"context_length", *config.max_position_embeddings},
      {"embedding_length", config.hidden_size},
      {"feed_forward_length", intermediate},
      {"attention.head_count", config.num_attention_heads}};
  for (const auto& [key, value] : numbers)
    out.keys.u32(fmt::format("{}.{}", family.architecture, key), static_cast<uint32_t>(value));
  out.keys.f32(fmt::format("{}.attention.layer_norm_epsilon", family.architecture),
               static_cast<float>(eps.value_or(1e-12)));
  out.keys.boolean(fmt::format("{}.attention.causal", family.architecture), false);
  return out;
}

std::optional<HfTensorName> bert_gguf_name_of(std::string_view hf_name) {
  constexpr std::string_view kModel = "bert.";
  if (hf_name.starts_with(kModel)) hf_name.remove_prefix(kModel.size());
  for (const std::string_view ignored : kIgnored)
    if (hf_name.starts_with(ignored)) return HfTensorName{.name = {}, .ignored = true};
  auto name = translate(hf_name, &Name::hf, kHfLayer, &Name::gguf, kGgufLayer);
  if (!name) return std::nullopt;
  return HfTensorName{.name = std::move(*name)};
}

std::string bert_hf_name_of(std::string_view gguf_name) {
  return translate(gguf_name, &Name::gguf, kGgufLayer, &Name::hf, kHfLayer)
      .value_or(std::string(gguf_name));
}

}  // namespace octavo
