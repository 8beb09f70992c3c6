// The tokenizer of a Hugging Face folder: tokenizer.json with what tokenizer_config.json,
// chat_template.jinja and generation_config.json say beside it.
#pragma once

#include <string>

#include "base/result.h"
#include "core/tokenizer_spec.h"

namespace octavo {

// Errors: not_found, corrupt_file, unsupported (a part that is not known here, by name).
Result<TokenizerSpec> read_hf_tokenizer(const std::string& folder);

}  // namespace octavo
