#include "kv/estimator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kv/block_size.h"
#include "kv/kv_layout.h"

namespace octavo {
namespace {

template <class... Args>
tl::unexpected<Error> refuse(fmt::format_string<Args...> text, Args&&... args) {
  return fail(ErrorCode::invalid_argument, fmt::format(text, std::forward<Args>(args)...));
}

Result<void> validate_shape(const KvShape& s) {
  if (s.num_kv_heads < 1 || s.num_heads < 1 || s.num_heads % s.num_kv_heads != 0)
    return refuse("{} query heads over {} KV heads; allowed: 1 or more, and a multiple of them",
                  s.num_heads, s.num_kv_heads);
  if (!s.windows.empty() && std::cmp_not_equal(s.windows.size(), s.num_layers))
    return refuse("{} attention windows for {} layers; allowed: one for each, or none",
                  s.windows.size(), s.num_layers);
  for (int window : s.windows)
    if (window < 0) return refuse("an attention window of {}; allowed: 0 (none) or more", window);
  return {};
}

// The number of blocks of all sequences.
Result<int64_t> count_blocks(int64_t seq_len, int64_t batch_size, int block_size) {
  if (seq_len < 1) return refuse("a sequence length of {}; allowed: 1 or more", seq_len);
  if (batch_size < 1) return refuse("a batch size of {}; allowed: 1 or more", batch_size);
  int64_t blocks = 0;
  if (__builtin_mul_overflow(blocks_for(seq_len, block_size), batch_size, &blocks))
    return refuse("{} sequences of {} tokens are too many to count", batch_size, seq_len);
  return blocks;
}

// Blocks of one sequence that a layer looks at, wherever in a block its window begins.
int64_t blocks_in_window(int64_t seq_len, int window, int block_size) {
  const int64_t all = blocks_for(seq_len, block_size);
  return window == 0 ? all : std::min(all, blocks_for(window - 1, block_size) + 1);
}

}  // namespace

int64_t KvEstimate::sequences_that_fit(int64_t memory_bytes) const {
  return std::max<int64_t>(0, memory_bytes) / bytes_per_sequence();
}

Result<KvEstimate> estimate(const KvShape& shape, int64_t seq_len, int64_t batch_size, KvType type,
                            int block_size) {
  OCTAVO_CHECK_OK(validate_shape(shape));
  const KvLayout layout{shape.num_layers, shape.num_kv_heads, shape.head_dim, block_size, type};
  OCTAVO_CHECK_OK(validate(layout));
  OCTAVO_TRY(const int64_t blocks, count_blocks(seq_len, batch_size, block_size));
  OCTAVO_TRY(const size_t total, storage_bytes(layout, blocks));
  KvLayout without_gqa = layout;
  without_gqa.num_kv_heads = shape.num_heads;
  OCTAVO_TRY(const size_t total_without_gqa, storage_bytes(without_gqa, blocks));

  // No product below can overflow: each is at most `total`.
  KvEstimate result{seq_len,
                    batch_size,
                    static_cast<int64_t>(total),
                    0,
                    static_cast<int64_t>(total_without_gqa),
                    static_cast<int64_t>(total)};
  const auto bytes_per_token = static_cast<int64_t>(layout.bytes_per_block() / block_size);
  result.exact_bytes = bytes_per_token * seq_len * batch_size;
  if (shape.windows.empty()) return result;

  int64_t kept = 0;
  for (int window : shape.windows) kept += blocks_in_window(seq_len, window, block_size);
  result.windowed_bytes = kept * static_cast<int64_t>(layout.bytes_per_layer_block()) * batch_size;
  return result;
}

}  // namespace octavo
