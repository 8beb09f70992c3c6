// How a tokenizer.json makes text tokens and tokens text, step by step.
#pragma once

#include "base/result.h"
#include "core/token_pipeline_spec.h"
#include "formats/json_section.h"

namespace octavo {

// Normalizer, pre_tokenizer and decoder of the file. Errors: corrupt_file, unsupported.
Result<void> read_pipeline_steps(const JsonSection& root, TokenPipelineSpec& pipeline);

}  // namespace octavo
