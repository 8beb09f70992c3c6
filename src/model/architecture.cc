#include "model/architecture.h"

#include <algorithm>
#include <array>

namespace octavo {
namespace {

constexpr std::array kArchitectures = {
    // Llama 1 to 3, SmolLM, Mistral, Mixtral
    Architecture{
        .name = "llama", .rope_interleaved = true, .experts = HasExperts::some, .windows = true},
    Architecture{.name = "qwen2", .qkv_bias = true},
    Architecture{.name = "qwen3", .qk_norm = true},
    Architecture{.name = "qwen3moe", .qk_norm = true, .experts = HasExperts::all},
    Architecture{.name = "phi3", .fused = true, .windows = true},
    // Its norms' weights have one added in the file. 62 layers: the model of 27B.
    Architecture{.name = "gemma3",
                 .qk_norm = true,
                 .post_norms = true,
                 .scaled_embedding = true,
                 .activation = Activation::gelu_tanh,
                 .windows = true,
                 .window_pattern = 6,
                 .local_rope_base = 10000,
                 .layers_scaled_by_width = 62},
};

}  // namespace

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture* find_architecture(std::string_view name) {
  const auto* row = std::ranges::find(kArchitectures, name, &Architecture::name);
  return row == kArchitectures.end() ? nullptr : row;
}

}  // namespace octavo
