#include "engine/sizing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kv/block_pool.h"
#include "kv/block_size.h"

namespace octavo {
namespace {

// Less than a model has of its own is taken only down to this, unless --max-model-len asks for it:
// a server that cannot hold a question and its answer is better not started.
constexpr int kLeastContext = 256;

std::string in_bytes(int64_t bytes) {
  const double kib = static_cast<double>(bytes) / 1024;
  if (kib < 1024) return fmt::format("{:.1f} KiB", kib);
  return kib < 1024 * 1024 ? fmt::format("{:.1f} MiB", kib / 1024)
                           : fmt::format("{:.2f} GiB", kib / 1024 / 1024);
}

int64_t cache_bytes(const SizingRequest& r) {
  if (r.kv_cache_memory_bytes > 0) return r.kv_cache_memory_bytes;
  if (!r.available_bytes) return std::numeric_limits<int64_t>::max();
  const auto share =
      static_cast<int64_t>(r.gpu_memory_utilization * static_cast<double>(*r.available_bytes));
  return std::max<int64_t>(share - r.weight_bytes - r.activation_bytes, 0);
}

int64_t bytes_per_block(const SizingRequest& r) {
  return r.bytes_per_block + r.draft_bytes_per_block;
}

std::string where_from(const SizingRequest& r, int64_t bytes) {
  const char* whose = r.draft_bytes_per_block > 0 ? " of model and draft model" : "";
  if (r.kv_cache_memory_bytes > 0)
    return fmt::format("--kv-cache-memory-bytes gives the KV cache{} {}", whose, in_bytes(bytes));
  return fmt::format(
      "{} of memory is available, of which --gpu-memory-utilization {} may be used; weights take "
      "{}, activations {}, and {} is left for the KV cache{}",
      in_bytes(*r.available_bytes), r.gpu_memory_utilization, in_bytes(r.weight_bytes),
      in_bytes(r.activation_bytes), in_bytes(bytes), whose);
}

tl::unexpected<Error> too_little(const SizingRequest& r, int64_t bytes, int wanted, int64_t fits) {
  const int64_t needed = blocks_for(wanted, r.block_size) * bytes_per_block(r);
  const std::string change = fits > 0 ? fmt::format("lower --max-model-len to {}", fits)
                                      : std::string("use a smaller model or --kv-cache-dtype int8");
  return fail(ErrorCode::resource_exhausted,
              fmt::format("a sequence of {} tokens needs a KV cache of {} ({} per token): {}; {}, "
                          "or set --kv-cache-memory-bytes to {}",
                          wanted, in_bytes(needed), in_bytes(bytes_per_block(r) / r.block_size),
                          where_from(r, bytes), change, needed));
}

}  // namespace

Result<Sizing> size_kv_cache(const SizingRequest& r) {
  if (r.max_model_len > r.context_length)
    return fail(ErrorCode::invalid_argument,
                fmt::format("--max-model-len is {}, but the model's context is {}; lower it",
                            r.max_model_len, r.context_length));
  const int64_t bytes = cache_bytes(r);
  const int64_t blocks = std::min<int64_t>(bytes / bytes_per_block(r), BlockPool::kMaxBlocks);
  const int64_t fits = blocks * r.block_size;
  const int wanted = r.max_model_len > 0 ? r.max_model_len : r.context_length;
  const int least = r.max_model_len > 0 ? wanted : std::min(wanted, kLeastContext);
  if (fits < least) return too_little(r, bytes, least, fits);

  Sizing sizing;
  sizing.max_model_len = static_cast<int>(std::min<int64_t>(wanted, fits));
  if (sizing.max_model_len < wanted)
    sizing.note = fmt::format("sequences may have {} tokens of the model's {}: {}",
                              sizing.max_model_len, wanted, where_from(r, bytes));
  const int64_t needed = blocks_for(sizing.max_model_len, r.block_size) * r.max_num_seqs;
  sizing.num_blocks = static_cast<int>(std::min(blocks, needed));
  return sizing;
}

}  // namespace octavo
