#include "model/memory_estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/checked.h"
#include "base/cores.h"
#include "kernels/pack.h"
#include "model/step_buffers.h"

namespace octavo {

Result<int64_t> loaded_weight_bytes(const ModelSource& file) {
  uint64_t total = 0;
  for (const TensorView& tensor : file.tensors()) {
    uint64_t bytes = static_cast<uint64_t>(tensor.cols()) * sizeof(float);
    if (tensor.rank > 1) {
      OCTAVO_TRY(bytes, kernels::packed_bytes(tensor.type, tensor.rows(), tensor.cols()));
    }
    const auto sum = checked_add(total, bytes);
    if (!sum || *sum > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return fail(ErrorCode::resource_exhausted,
                  fmt::format("{}: the weights are too large", file.file()));
    total = *sum;
  }
  return static_cast<int64_t>(total);
}

int64_t activation_bytes(const ModelConfig& config, int max_num_batched_tokens, int max_lora_rank) {
  const int64_t logits = int64_t{max_logits_rows(config.vocab_size, max_num_batched_tokens)} *
                         logits_stride(config.vocab_size) * int64_t{sizeof(float)};
  return static_cast<int64_t>(StepBuffers::bytes(
             buffer_shape(config, max_num_batched_tokens, available_cores(), max_lora_rank))) +
         logits;
}

}  // namespace octavo
