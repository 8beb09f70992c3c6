// How long sequences may be and how many KV blocks there are: from what is asked and what there is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace octavo {

struct SizingRequest {
  int max_model_len = 0;              // 0: auto, the model's context as far as it fits
  int64_t kv_cache_memory_bytes = 0;  // 0: from the memory there is
  double gpu_memory_utilization = 0.9;
  int max_num_seqs = 1;

  int context_length = 0;       // of the model
  int block_size = 0;           // tokens
  int64_t bytes_per_block = 0;  // of the KV cache
  // Of the draft model's, which has as many blocks; its weights and activations are among the
  // model's. 0: there is none.
  int64_t draft_bytes_per_block = 0;
  int64_t weight_bytes = 0;  // that loading will still take
  int64_t activation_bytes = 0;
  std::optional<int64_t> available_bytes;  // to this process; nothing: unknown, taken as plenty
};

struct Sizing {
  int max_model_len = 0;
  int num_blocks = 0;
  std::string note;  // what the user should know; may be empty
};

// As many blocks as max_num_seqs sequences of max_model_len need, if the memory has them: address
// space, which the system fills as blocks are written. Errors: invalid_argument for a max_model_len
// beyond the model's context, resource_exhausted if not even one sequence fits; they say which
// number to change to what.
Result<Sizing> size_kv_cache(const SizingRequest& request);

}  // namespace octavo
