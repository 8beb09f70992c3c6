#include "formats/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file_map.h"
#include "formats/hf_text_config.h"
#include "formats/json_section.h"
#include "formats/quote.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr int64_t kMaxLayers = 10000;

Result<std::optional<DType>> read_dtype(const JsonSection& section) {
  OCTAVO_TRY(const char* field, section.one_of("dtype", "torch_dtype"));
  if (!field) return std::optional<DType>();
  OCTAVO_TRY(const auto text, section.find_string(field));
  if (*text == "float32") return DType::f32;
  if (*text == "float16") return DType::f16;
  if (*text == "bfloat16") return DType::bf16;
  return section.error(field,
                       fmt::format("is {}; known are float32, float16 and bfloat16", quote(*text)),
                       ErrorCode::unsupported);
}

Result<int64_t> layer_window(const JsonSection& section, const json& type,
                             std::optional<int64_t> window) {
  if (type == "full_attention") return 0;
  if (type != "sliding_attention")
    return section.error("layer_types",
                         fmt::format("has the layer type {}; known are 'full_attention' and "
                                     "'sliding_attention'",
                                     quote(type.is_string() ? type.get<std::string>() : "?")),
                         ErrorCode::unsupported);
  if (!window) return section.error("sliding_window", "is missing, but 'layer_types' needs it");
  return *window;
}

Result<std::vector<int64_t>> windows_by_type(const JsonSection& section, const json& types,
                                             int64_t layers, std::optional<int64_t> window) {
  if (!types.is_array() || types.size() != static_cast<size_t>(layers))
    return section.error("layer_types", fmt::format("is not a list of {} layers", layers));
  std::vector<int64_t> windows;
  for (const json& type : types) {
    OCTAVO_TRY(windows.emplace_back(), layer_window(section, type, window));
  }
  return windows;
}

// Families whose configuration class assumes a pattern or a switch when the file has none.
struct Family {
  std::string_view model_type;
  int64_t pattern;  // every N-th layer is global; 0: no pattern
  bool window_off;  // use_sliding_window defaults to false
};

constexpr std::array kFamilies = {
    Family{"gemma2", 2, false},   Family{"gemma3", 6, false},  Family{"gemma3_text", 6, false},
    Family{"cohere2", 4, false},  Family{"gpt_oss", 2, false}, Family{"qwen2", 0, true},
    Family{"qwen2_moe", 0, true}, Family{"qwen3", 0, true},    Family{"qwen3_moe", 0, true},
};

Family family_of(std::string_view model_type) {
  const auto it = std::find_if(kFamilies.begin(), kFamilies.end(),
                               [&](const Family& f) { return f.model_type == model_type; });
  return it == kFamilies.end() ? Family{model_type, 0, false} : *it;
}

Result<int64_t> read_pattern(const JsonSection& section, const Family& family) {
  OCTAVO_TRY(const auto pattern,
             section.one_number("sliding_window_pattern", "_sliding_window_pattern", 1));
  return pattern.value_or(family.pattern);
}

// With use_sliding_window, the first max_window_layers layers are global.
Result<int64_t> first_windowed_layer(const JsonSection& section, std::optional<bool> use_window) {
  if (!use_window) return 0;
  OCTAVO_TRY(const auto first, section.find_number("max_window_layers", 0));
  if (first) return *first;
  return section.error("max_window_layers", "is missing, but 'use_sliding_window' needs it");
}

Result<std::vector<int64_t>> read_windows(const JsonSection& section, const HfConfig& config) {
  const int64_t layers = config.num_hidden_layers;
  OCTAVO_TRY(const auto window, section.find_number("sliding_window"));
  OCTAVO_TRY(const auto use_window, section.find_bool("use_sliding_window"));
  if (const json* types = section.find("layer_types")) {
    OCTAVO_TRY(auto windows, windows_by_type(section, *types, layers, window));
    const bool has_windows = std::ranges::any_of(windows, [](int64_t size) { return size > 0; });
    if (has_windows && !use_window.value_or(true))
      return section.contradiction("use_sliding_window", "layer_types");
    return windows;
  }

  const Family family = family_of(config.model_type);
  std::vector<int64_t> windows(static_cast<size_t>(layers), 0);
  if (!window || !use_window.value_or(!family.window_off)) return windows;
  OCTAVO_TRY(const int64_t pattern, read_pattern(section, family));
  OCTAVO_TRY(const int64_t first, first_windowed_layer(section, use_window));
  for (int64_t i = first; i < layers; ++i) {
    const bool global = pattern > 0 && (i + 1) % pattern == 0;
    if (!global) windows[static_cast<size_t>(i)] = *window;
  }
  return windows;
}

Result<void> read_heads(const JsonSection& section, HfConfig& config) {
  OCTAVO_TRY(config.hidden_size, section.number("hidden_size"));
  OCTAVO_TRY(const auto heads,
             section.find_layer_number("num_attention_heads", config.num_hidden_layers));
  if (!heads) return section.error("num_attention_heads", "is missing");
  config.num_attention_heads = *heads;
  OCTAVO_TRY(const auto kv_heads,
             section.find_layer_number("num_key_value_heads", config.num_hidden_layers));
  OCTAVO_TRY(const auto head_dim, section.find_number("head_dim"));
  config.num_key_value_heads = kv_heads.value_or(config.num_attention_heads);
  config.head_dim = head_dim.value_or(config.hidden_size / config.num_attention_heads);
  if (config.num_attention_heads % config.num_key_value_heads != 0)
    return section.error("num_key_value_heads",
                         fmt::format("is {}, which does not divide the {} attention heads",
                                     config.num_key_value_heads, config.num_attention_heads));
  if (!head_dim && config.hidden_size % config.num_attention_heads != 0)
    return section.error(
        "head_dim", fmt::format("is missing, and hidden_size {} is no multiple of the {} heads",
                                config.hidden_size, config.num_attention_heads));
  return {};
}

Result<HfConfig> read_section(const JsonSection& section) {
  HfConfig config;
  OCTAVO_TRY(const auto model_type, section.find_string("model_type"));
  config.model_type = model_type.value_or("");
  // DeepSeek's latent attention caches something else than K and V per head.
  if (section.find("kv_lora_rank"))
    return section.error("kv_lora_rank", "means latent attention, whose cache is not known here",
                         ErrorCode::unsupported);
  OCTAVO_TRY(config.num_hidden_layers, section.number("num_hidden_layers", kMaxLayers));
  OCTAVO_CHECK_OK(read_heads(section, config));
  OCTAVO_TRY(config.max_position_embeddings, section.find_number("max_position_embeddings"));
  OCTAVO_TRY(config.vocab_size, section.find_number("vocab_size"));
  OCTAVO_TRY(config.dtype, read_dtype(section));
  OCTAVO_TRY(config.windows, read_windows(section, config));
  return config;
}

}  // namespace

Result<HfConfig> parse_hf_config(std::string_view text, const std::string& name) {
  OCTAVO_TRY(const HfTextConfig config, parse_hf_text_config(text, name));
  return read_section(JsonSection(config.object, name, config.prefix));
}

Result<HfConfig> read_hf_config(const std::string& path) {
  OCTAVO_TRY(const FileMap map, FileMap::open(path));
  const auto bytes = map.bytes();
  return parse_hf_config({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace octavo
