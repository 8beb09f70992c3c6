// The tokens that a tokenizer.json puts around a text.
#pragma once

#include "base/result.h"
#include "core/tokenizer_spec.h"
#include "formats/json_section.h"

namespace octavo {

// Sets bos, eos, add_bos and add_eos from root's post_processor.
// Errors: corrupt_file, unsupported (several tokens at one end, a kind that is not known).
Result<void> read_post_processor(const JsonSection& root, TokenizerSpec& spec);

}  // namespace octavo
