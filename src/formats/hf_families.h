// Hugging Face's model families, and what each calls what GGUF gives a name. The one table behind
// reading a folder: a family is a row, a tensor's name is a row.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace octavo {

struct HfFamily {
  std::string_view model_type;    // of config.json
  std::string_view architecture;  // GGUF's name of it
  // GGUF keeps the rows of q and k of this family in another order: rotary pairs side by side
  // instead of half a head apart.
  bool permuted_qk = false;
  // Norms are stored as the difference from 1; GGUF stores the sum.
  bool norms_from_zero = false;
  std::string_view activation = "silu";
  // A norm after each part of a layer: one name means another thing than elsewhere.
  bool post_norms = false;
  bool qkv_bias = false;          // q, k and v have one, though config.json does not say
  bool biases_by_config = false;  // attention_bias and mlp_bias may be true
  bool tied_by_default = false;   // tie_word_embeddings, when config.json does not say
  bool encoder = false;           // read by formats/hf_bert.h
  double score_width = 0;  // query_pre_attn_scalar, when config.json does not say; 0: head_dim
  double rope_theta = 0;   // when config.json does not say; 0: it must
};

std::span<const HfFamily> hf_families();
const HfFamily* find_hf_family(std::string_view model_type);  // nullptr: not known

// Where a tensor of a folder goes.
struct HfTensorName {
  std::string name;                // GGUF's
  std::optional<int> expert = {};  // it is this expert's part of that tensor
  bool ignored = false;            // it holds nothing that config.json does not say
};

// What a tensor of a model of images and text would be called in the text model alone. Nothing: it
// belongs to another part.
std::optional<std::string> text_part_name(std::string_view hf_name);

// Nothing: the family has no such tensor.
std::optional<HfTensorName> gguf_name_of(const HfFamily& family, std::string_view hf_name);
// What the family calls a tensor of GGUF's name; the name itself if it calls it nothing.
std::string hf_name_of(const HfFamily& family, std::string_view gguf_name);

}  // namespace octavo
