#include "formats/hf_text_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/json_section.h"

namespace octavo {
namespace {

using nlohmann::json;

// Nested objects are written without what their class assumes.
const json& gemma3_defaults() {
  static const json defaults = {{"vocab_size", 262208},
                                {"hidden_size", 2304},
                                {"intermediate_size", 9216},
                                {"num_hidden_layers", 26},
                                {"num_attention_heads", 8},
                                {"num_key_value_heads", 4},
                                {"head_dim", 256},
                                {"max_position_embeddings", 131072},
                                {"rms_norm_eps", 1e-6},
                                {"sliding_window", 4096},
                                {"query_pre_attn_scalar", 256}};
  return defaults;
}

void fill_in(json& object, const json& defaults) {
  for (const auto& [field, value] : defaults.items())
    if (!object.contains(field)) object[field] = value;
}

// Said once for all parts of a model. What the parts say of their type may differ: it is that of
// the files that counts.
struct Shared {
  const char* field;
  bool may_differ;
};
constexpr Shared kShared[] = {{"quantization_config", false},
                              {"dtype", true},
                              {"torch_dtype", true},
                              {"tie_word_embeddings", false}};

}  // namespace

Result<HfTextConfig> parse_hf_text_config(std::string_view text, const std::string& name) {
  OCTAVO_TRY(json root, parse_config_json(text, name));
  const JsonSection outer(root, name, "");
  const json* nested = outer.find("text_config");
  if (!nested) return HfTextConfig{std::move(root), ""};
  if (!nested->is_object()) return outer.error("text_config", "is not an object");
  OCTAVO_TRY(const auto whole, outer.find_string("model_type"));
  HfTextConfig out{*nested, "text_config.", whole.value_or("?")};
  for (const auto& [field, may_differ] : kShared) {
    const json* value = outer.find(field);
    if (!value) continue;
    const bool is_given = out.object.contains(field) && !out.object[field].is_null();
    if (is_given && !may_differ && out.object[field] != *value)
      return outer.contradiction(field, out.prefix + field);
    if (!is_given) out.object[field] = *value;
  }
  if (out.object.value("model_type", json()) == "gemma3_text")
    fill_in(out.object, gemma3_defaults());
  return out;
}

}  // namespace octavo
