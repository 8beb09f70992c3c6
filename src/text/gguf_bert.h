// GGUF's tokenizer model "bert": WordPiece whose first pieces begin with U+2581 and whose inner
// ones have no mark.
#pragma once

#include "base/result.h"
#include "core/tokenizer_spec.h"

namespace octavo {

// Sets spec.pipeline, and that [CLS] and [SEP] stand around a text where the file does not say.
// Errors: corrupt_file (no unknown token, types not one per token).
Result<void> add_bert_pipeline(TokenizerSpec& spec);

}  // namespace octavo
