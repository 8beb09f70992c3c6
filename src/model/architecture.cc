#include "model/architecture.h"

#include <algorithm>
#include <array>

namespace octavo {
namespace {

constexpr std::array kArchitectures = {
    // Llama 1 to 3, SmolLM, Mistral, Mixtral
    Architecture{.name = "llama",
                 .rope_interleaved = true,
                 .optional_biases = true,
                 .experts = HasExperts::some,
                 .windows = true},
    Architecture{.name = "qwen2", .qkv_bias = true},
    Architecture{.name = "qwen3", .qk_norm = QkNorm::each_head},
    Architecture{.name = "qwen3moe", .qk_norm = QkNorm::each_head, .experts = HasExperts::all},
    Architecture{.name = "phi3", .fused = true, .windows = true},
    Architecture{
        .name = "olmo2", .qk_norm = QkNorm::all_heads, .pre_norms = false, .post_norms = true},
    Architecture{.name = "granite", .rope_interleaved = true, .multipliers = true},
    // Gemma's norms have one added to their weights in the file. 46, 62 layers: the models of 27B.
    Architecture{.name = "gemma2",
                 .post_norms = true,
                 .scaled_embedding = true,
                 .activation = Activation::gelu_tanh,
                 .windows = true,
                 .window_pattern = 2,
                 .score_cap = 50,
                 .logit_cap = 30,
                 .layers_scaled_by_width = 46},
    Architecture{.name = "gemma3",
                 .qk_norm = QkNorm::each_head,
                 .post_norms = true,
                 .scaled_embedding = true,
                 .activation = Activation::gelu_tanh,
                 .windows = true,
                 .window_pattern = 6,
                 .local_rope_base = 10000,
                 .layers_scaled_by_width = 62},
    Architecture{.name = "bert", .qkv_bias = true, .encoder = true},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* find_architecture(std::string_view name) {
  const auto* row = std::ranges::find(kArchitectures, name, &Architecture::name);
  return row == kArchitectures.end() ? nullptr : row;
}

}  // namespace octavo
