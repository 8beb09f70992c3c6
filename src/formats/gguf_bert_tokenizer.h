// The tokenizer of a GGUF file whose tokenizer.ggml.model is "bert".
#pragma once

#include "base/result.h"
#include "core/tokenizer_spec.h"
#include "formats/gguf_metadata.h"

namespace octavo {

// Such a file spells a piece that begins a word with U+2581 before it, and one within a word as it
// is; here they become BERT's own "word" and "##piece". Fills spec.pipeline and spells spec.tokens
// anew. Errors: unsupported (no token for unknown words).
Result<void> read_bert_pipeline(const GgufMetadata& file, TokenizerSpec& spec);

}  // namespace octavo
