// A tokenizer as the pairs of a GGUF file: the reverse of formats/gguf_tokenizer.h.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/tokenizer_spec.h"
#include "formats/gguf_writer.h"

namespace octavo {

// num_rows: of the embedding; ids beyond the tokens get names of their own, as readers want one for
// each row. `name` is for messages. Returns notes for the user: what GGUF has no key for. Errors:
// unsupported (a kind of tokenizer, or a way to cut words, that has no name in GGUF).
Result<std::vector<std::string>> add_tokenizer_pairs(const TokenizerSpec& spec, size_t num_rows,
                                                     const std::string& name, GgufPairs& pairs);

}  // namespace octavo
