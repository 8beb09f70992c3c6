// Which combinations of batch size and depth can be measured with this model on this machine, and
// why the others cannot. Plain numbers, decided before anything is measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace octavo {

struct LatencyCase {
  int depth = 0;       // tokens that each sequence has in its cache beforehand
  int batch_size = 1;  // sequences that decode together

  bool operator==(const LatencyCase&) const = default;
};

struct SkippedCase {
  LatencyCase which;
  std::string reason;
};

struct LatencyLengths {
  int prompt_tokens = 512;
  int gen_tokens = 128;
};

// What there is room for.
struct LatencyRoom {
  int context_length = 0;
  int block_size = 0;
  int num_blocks = 0;  // of the model's cache
  int64_t bytes_per_block = 0;
  std::optional<int64_t> free_bytes;  // of memory; nothing: not known
};

struct LatencyPlan {
  std::vector<LatencyCase> cases;  // by depth, then batch size, as given
  std::vector<SkippedCase> skipped;
};

// Errors: invalid_argument for lengths, depths or batch sizes out of range; context_overflow or
// resource_exhausted, with the first reason, if no case is left.
Result<LatencyPlan> plan_latency(const LatencyLengths& lengths, const std::vector<int>& depths,
                                 const std::vector<int>& batch_sizes, const LatencyRoom& room);

}  // namespace octavo
