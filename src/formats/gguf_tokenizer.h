// The tokenizer that a GGUF file carries (keys tokenizer.ggml.* and tokenizer.chat_template), as
// plain data.
#pragma once

#include "base/result.h"
#include "core/tokenizer_spec.h"
#include "formats/gguf_metadata.h"

namespace octavo {

// Checks what belongs to the file: types, lengths of the arrays, ids inside the vocabulary, known
// token types. Whether the tokenizer itself is known is text/'s question. Errors: corrupt_file,
// unsupported; the message names file, key and byte.
Result<TokenizerSpec> read_tokenizer_spec(const GgufMetadata& file);

}  // namespace octavo
