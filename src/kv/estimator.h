// How much memory the KV cache of a model takes, before anything is allocated. Counts with
// KvLayout, as the allocation does.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "kv/kv_type.h"

namespace octavo {

struct KvShape {
  int num_layers = 0;
  int num_heads = 0;  // query heads; a multiple of num_kv_heads
  int num_kv_heads = 0;
  int head_dim = 0;
  // Per layer the positions it can look back on, its own included; 0: all. Empty: all layers see
  // all.
  std::vector<int> windows;
};

struct KvEstimate {
  int64_t seq_len = 0;
  int64_t batch_size = 0;

  // What the cache takes: whole blocks, every layer at full length.
  int64_t total_bytes = 0;
  // 2 x layers x batch x length x KV heads x (head size x bytes per element, + 4 in int8: a scale).
  int64_t exact_bytes = 0;
  // The same as total_bytes with one KV head per query head (no GQA or MQA).
  int64_t bytes_without_gqa = 0;
  // What would do if layers with a window kept only the blocks their window can touch; total_bytes
  // without windows.
  int64_t windowed_bytes = 0;

  // In the unfilled part of each sequence's last block.
  int64_t lost_bytes() const { return total_bytes - exact_bytes; }
  int64_t bytes_per_sequence() const { return total_bytes / batch_size; }
  // How many times the memory GQA saves: 7 for 28 query heads over 4 KV heads.
  double gqa_ratio() const { return static_cast<double>(bytes_without_gqa) / total_bytes; }
  // How many sequences of seq_len fit; 0 if not even one does, or for a negative number of bytes.
  int64_t sequences_that_fit(int64_t memory_bytes) const;
};

// Errors: invalid_argument, naming the number, for counts or lengths below 1, heads that KV heads
// do not divide, a list of windows of the wrong length, a block size that is not allowed, and
// totals of 2^63 bytes or more.
Result<KvEstimate> estimate(const KvShape& shape, int64_t seq_len, int64_t batch_size, KvType type,
                            int block_size);

}  // namespace octavo
