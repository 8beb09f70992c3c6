// The rope fields of a Hugging Face config.json, as GGUF has them.
#pragma once

#include "base/result.h"
#include "formats/hf_config.h"
#include "formats/hf_metadata.h"
#include "formats/json_section.h"

namespace octavo {

// Adds keys and vectors to `out`, whose family is set.
Result<void> read_hf_rope(const JsonSection& section, const HfConfig& config, HfMetadata& out);

}  // namespace octavo
