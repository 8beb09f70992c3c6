// The memory that running a model takes besides its KV cache (kv/estimator.h), before anything is
// allocated: counted by the code that allocates it.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "formats/model_source.h"
#include "model/model_config.h"

namespace octavo {

// Of all tensors once loaded: matrices as panels, vectors as floats. Errors: corrupt_file,
// resource_exhausted (2^63 bytes or more).
Result<int64_t> loaded_weight_bytes(const ModelSource& file);

// The buffers of one step of at most max_num_batched_tokens, and its rows of logits.
int64_t activation_bytes(const ModelConfig& config, int max_num_batched_tokens,
                         int max_lora_rank = 0);

}  // namespace octavo
