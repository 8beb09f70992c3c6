// From flags to what the engine takes.
#pragma once

#include "base/result.h"
#include "cli/option_values.h"
#include "core/sampling_params.h"
#include "engine/catalog.h"
#include "engine/load.h"

namespace octavo::cli {

// Of generate and chat, checked as far as can be without a model: what the vocabulary decides is
// left to the engine. temperature and top_p that are not given are set by use_model_defaults().
Result<SamplingParams> read_sampling_params(const OptionValues& options);

// Where temperature and top_p are not given: the model's own if the catalog knows the file, else
// kDefaultTemperature and kDefaultTopP.
void use_model_defaults(SamplingParams& params, const OptionValues& options,
                        const CatalogEntry* known);

// Of generate, chat, perplexity and bench. Model and progress are left to the caller. max_num_seqs
// that is not given is the engine's default, or max_num_batched_tokens if that is less.
EngineOptions read_engine_options(const OptionValues& options);

// Flags that contradict each other: invalid_argument, naming both.
Result<void> check_engine_flags(const OptionValues& options);

}  // namespace octavo::cli
