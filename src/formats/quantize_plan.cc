#include "formats/quantize_plan.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace octavo {
namespace {

constexpr std::string_view kOutput = "output.weight", kEmbedding = "token_embd.weight";
constexpr int kFullSizeExperts = 8;   // of Mixtral, whose small tensors are worth more bits
constexpr int kLayersOfSharedV = 80;  // of Llama 70B, where eight heads share a V

// Parts of names of matrices that stay as they are.
constexpr std::array<std::string_view, 7> kKept = {
    "_norm.weight", "ffn_gate_inp.weight", "position_embd", "token_types",
    "attn_rel_b",   "ssm_conv1d",          "shortconv.conv"};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_quantized_here(const TensorView& tensor) {
  return tensor.rank >= 2 && tensor.name.ends_with("weight") &&
         std::none_of(kKept.begin(), kKept.end(),
                      [&](std::string_view part) { return contains(tensor.name, part); });
}

// 3 of "blk.3.attn_q.weight"; -1: not in a layer.
int layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return -1;
  int layer = -1;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  return layer;
}

bool fits(const TensorView& tensor, DType type) {
  return tensor.cols() % info(type).block_elements == 0;
}

bool is_precious_layer(int layer, int num_layers) {
  const int eighth = num_layers / 8;
  return layer < eighth || layer >= 7 * num_layers / 8 || (layer - eighth) % 3 == 2;
}

DType head_type(const TensorView& tensor, DType type) {
  return type == DType::q8_0 || !fits(tensor, type) ? DType::q8_0 : DType::q6_k;
}

// Of q4_k and q5_k, in a layer.
DType mixed_type(std::string_view name, const QuantizeRules& rules) {
  const bool is_v = contains(name, "attn_v.weight") || contains(name, "attn_qkv.weight");
  const bool is_precious = is_precious_layer(layer_of(name), rules.num_layers);
  if ((is_v || contains(name, "ffn_down")) && is_precious) return DType::q6_k;
  if (is_v && rules.type == DType::q4_k && rules.num_layers == kLayersOfSharedV) return DType::q5_k;
  if (contains(name, "attn_output.weight") && rules.num_experts == kFullSizeExperts)
    return DType::q5_k;
  return rules.type;
}

DType wanted_type(const TensorView& tensor, const QuantizeRules& rules) {
  if (rules.pure || !info(rules.type).quantized) return rules.type;
  if (tensor.name == kOutput || (rules.tied && tensor.name == kEmbedding))
    return head_type(tensor, rules.type);
  const bool is_k_or_v =
      contains(tensor.name, "attn_k.weight") || contains(tensor.name, "attn_v.weight");
  if (is_k_or_v && rules.num_experts == kFullSizeExperts) return DType::q8_0;
  const bool is_mixed = rules.type == DType::q4_k || rules.type == DType::q5_k;
  return is_mixed && layer_of(tensor.name) >= 0 ? mixed_type(tensor.name, rules) : rules.type;
}

// Of similar size, with blocks of 32.
DType with_small_blocks(DType type) {
  switch (type) {
    case DType::q4_k:
      return DType::q5_0;
    case DType::q5_k:
      return DType::q5_1;
    case DType::q6_k:
      return DType::q8_0;
    default:
      return type;
  }
}

}  // namespace

QuantizeRules make_rules(DType type, bool pure, std::span<const TensorView> tensors,
                         int num_experts) {
  QuantizeRules rules{.type = type, .pure = pure, .num_experts = num_experts};
  for (const TensorView& tensor : tensors) {
    if (tensor.name == kOutput) rules.tied = false;
    rules.num_layers = std::max(rules.num_layers, layer_of(tensor.name) + 1);
  }
  return rules;
}

TensorPlan plan_tensor(const TensorView& tensor, const QuantizeRules& rules) {
  if (!is_quantized_here(tensor)) return {tensor.type};
  const DType wanted = wanted_type(tensor, rules);
  if (fits(tensor, wanted)) return {wanted};
  const DType smaller = with_small_blocks(wanted);
  return {fits(tensor, smaller) ? smaller : DType::f16, wanted};
}

uint32_t gguf_file_type(DType type) {
  switch (type) {
    case DType::f32:
      return 0;
    case DType::f16:
      return 1;
    case DType::q4_0:
      return 2;
    case DType::q4_1:
      return 3;
    case DType::q8_0:
      return 7;
    case DType::q5_0:
      return 8;
    case DType::q5_1:
      return 9;
    case DType::q2_k:
      return 10;
    case DType::q3_k:
      return 12;
    case DType::q4_k:
      return 15;
    case DType::q5_k:
      return 17;
    case DType::q6_k:
      return 18;
    case DType::bf16:
      return 32;
    case DType::q4_z:
      break;
  }
  return 0;
}

}  // namespace octavo
