#include "kv/kv_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <initializer_list>
#include <string_view>

#include "kv/block_size.h"

namespace octavo {
namespace {

Result<void> expect_positive(std::string_view what, int64_t value) {
  if (value >= 1) return {};
  return fail(
      ErrorCode::invalid_argument,
      fmt::format("a KV cache with {} {} is not possible; allowed: 1 or more", value, what));
}

// The product of positive factors, if it is below 2^63.
Result<int64_t> multiply(std::initializer_list<int64_t> factors) {
  int64_t product = 1;
  for (int64_t factor : factors)
    if (__builtin_mul_overflow(product, factor, &product))
      return fail(ErrorCode::invalid_argument,
                  fmt::format("a KV cache of {} bytes is not possible; lower the lengths or counts",
                              fmt::join(factors, " x ")));
  return product;
}

Result<int64_t> block_bytes(const KvLayout& l) {
  return multiply({2, l.num_layers, l.num_kv_heads, l.block_size,
                   static_cast<int64_t>(l.bytes_per_position())});
}

}  // namespace

Result<void> validate(const KvLayout& layout) {
  OCTAVO_CHECK_OK(expect_positive("layers", layout.num_layers));
  OCTAVO_CHECK_OK(expect_positive("KV heads", layout.num_kv_heads));
  OCTAVO_CHECK_OK(expect_positive("numbers per head", layout.head_dim));
  OCTAVO_CHECK_OK(check_block_size(layout.block_size));
  if (layout.type == KvType::int8 && layout.head_dim % 2 != 0)
    return fail(ErrorCode::invalid_argument,
                fmt::format("an int8 KV cache of {} numbers per head is not supported; allowed: "
                            "an even number, or another type",
                            layout.head_dim));
  OCTAVO_CHECK_OK(block_bytes(layout));
  return {};
}

Result<size_t> storage_bytes(const KvLayout& layout, int64_t num_blocks) {
  OCTAVO_CHECK_OK(validate(layout));
  OCTAVO_CHECK_OK(expect_positive("blocks", num_blocks));
  OCTAVO_TRY(const int64_t bytes,
             multiply({static_cast<int64_t>(layout.bytes_per_block()), num_blocks}));
  return static_cast<size_t>(bytes);
}

}  // namespace octavo
