// What the files of sentence-transformers in a Hugging Face folder say about embeddings:
// modules.json and the Pooling module's config.json.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/gguf_keys.h"

namespace octavo {

// Adds "ARCH.pooling_type" with GGUF's numbers (1: mean, 2: first token, 3: last token) and
// "ARCH.pooling_normalize". Without modules.json: nothing. Errors: corrupt_file, unsupported (a
// module, or a kind of pooling, that is not known).
Result<void> read_hf_pooling(const std::string& folder, std::string_view architecture,
                             GgufKeys& keys);

}  // namespace octavo
