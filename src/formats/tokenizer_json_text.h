// What a tokenizer.json does to text before it is merged, as a GGUF file would say it.
#pragma once

#include "base/result.h"
#include "core/tokenizer_spec.h"
#include "formats/json_section.h"

namespace octavo {

// Reads normalizer, pre_tokenizer and decoder into spec.pre_rule or the rules about spaces.
// Errors: corrupt_file, unsupported (no GGUF file could say it).
Result<void> read_tokenizer_text(const JsonSection& root, bool byte_fallback, TokenizerSpec& spec);

}  // namespace octavo
