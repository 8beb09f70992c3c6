// The parts of tokenizer.json around the vocabulary: what is done to text before it is merged, and
// to tokens afterwards.
#pragma once

#include "base/result.h"
#include "core/tokenizer_spec.h"
#include "formats/json_section.h"

namespace octavo {

// Reads normalizer, pre_tokenizer and decoder. Errors: corrupt_file, unsupported (a part that is
// not known, or not in this kind of tokenizer).
Result<void> read_tokenizer_text(const JsonSection& root, bool byte_fallback, TokenizerSpec& spec);

// Which tokens are added around a text: spec.bos, spec.eos, spec.add_bos, spec.add_eos.
Result<void> read_post_processor(const JsonSection& root, TokenizerSpec& spec);

}  // namespace octavo
