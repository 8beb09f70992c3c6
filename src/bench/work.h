// What a step has to read and to multiply, whatever the kernels do: beside the machine's limits it
// says how fast the step could be.
#pragma once

#include <cstdint>

#include "bench/limits.h"
#include "model/transformer.h"

namespace octavo {

struct Work {
  double read_bytes = 0;  // weights and KV cache
  double int8_macs = 0;   // multiply-adds of products whose activations are rounded
  double fp32_macs = 0;   // of other products, and of attention

  double read_seconds(const MachineLimits& limits) const {
    return read_bytes / (limits.read_gb_s * 1e9);
  }
  double multiply_seconds(const MachineLimits& limits) const {
    return int8_macs / (limits.int8_gmac_s * 1e9) + 2 * fp32_macs / (limits.fp32_gflop_s * 1e9);
  }
};

// Counts for one model.
class WorkModel {
 public:
  WorkModel(const ModelConfig& config, const Transformer& model);

  double weight_bytes() const { return layers_.read_bytes + head_.read_bytes; }
  double kv_bytes_per_token() const { return kv_bytes_per_token_; }

  // One step of `sequences` single tokens, each after `context` others (an average), the first
  // `shared` of which are the same for all and read once.
  Work decode_step(int sequences, double context, double shared = 0) const;
  // `tokens` of one sequence after `context` others, and the logits of the last. Reading is left
  // out.
  Work prefill(int tokens, double context) const;

 private:
  Work layers_, head_;         // of one token, attention not included; experts as for one alone
  double attention_macs_ = 0;  // of one token, per position that it sees
  double kv_bytes_per_token_ = 0;
};

}  // namespace octavo
