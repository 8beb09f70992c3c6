// The object of a config.json that describes the text model.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/result.h"

namespace octavo {

struct HfTextConfig {
  nlohmann::json object;  // with what the model's class assumes where files leave it out
  std::string prefix;     // for messages: "text_config." or nothing
  // A model of images as well, of which this is a part: its model_type; else empty.
  std::string whole = {};
};

// Errors: those of parse_config_json; corrupt_file (text_config is no object), unsupported (a field
// beside text_config that is not known).
Result<HfTextConfig> parse_hf_text_config(std::string_view text, const std::string& name);

}  // namespace octavo
