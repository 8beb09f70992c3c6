// Which limits suit the requests of a trace: how long a sequence may get, and how many fit at once.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "bench/percentiles.h"
#include "bench/trace.h"
#include "kv/estimator.h"

namespace octavo {

struct SizingRoom {
  KvShape shape;
  KvType type = KvType::f16;
  int block_size = 32;
  int64_t kv_bytes = 0;                   // of memory for the cache
  std::optional<int64_t> context_length;  // of the model; nothing: not known
};

struct TraceSizing {
  int64_t num_requests = 0;
  Summary input, output, total;  // tokens
  int64_t num_blocks = 0;        // that the memory holds

  // The longest request, in whole blocks; no more than the model's context and the memory allow.
  int64_t max_model_len = 0;
  int64_t covered_requests = 0;  // whose input and output fit in it
  int64_t p99_model_len = 0;     // the same for the shortest 99 %
  // How many requests fit when each has come to its end: of mean length, which is right on average
  // and leaves the rest to preemption, and of P95. At least 1, at most num_requests.
  int64_t max_num_seqs = 0;
  int64_t p95_num_seqs = 0;
};

// Errors: resource_exhausted if the memory holds no block; those of estimate(). REQUIRES: a trace
// that is not empty.
Result<TraceSizing> size_for(const Trace& trace, const SizingRoom& room);

}  // namespace octavo
