// BERT in Hugging Face's form: what its config.json says, and its tensors' names.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/hf_config.h"
#include "formats/hf_families.h"
#include "formats/hf_metadata.h"

namespace octavo {

// `root` is the whole of config.json, `name` its path, for messages. Errors: corrupt_file,
// unsupported (a field that may change what the model computes).
Result<HfMetadata> read_bert_metadata(const nlohmann::json& root, const std::string& name,
                                      const HfConfig& config, const HfFamily& family,
                                      std::string_view model_name);

// As gguf_name_of() and hf_name_of(). Names may begin with "bert.", as in models with a head; heads
// and the pooler, which embeddings do not go through, are ignored.
std::optional<HfTensorName> bert_gguf_name_of(std::string_view hf_name);
std::string bert_hf_name_of(std::string_view gguf_name);

}  // namespace octavo
