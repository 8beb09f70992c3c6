// Where each number of the KV cache lies in memory. Storage, kernels and estimator all count with
// this one header.
//
// Each layer has one array of blocks, indexed by BlockId. A block of a layer is, for each KV head
// in turn, a K part and a V part, with nothing between them:
//
//   K[block_size / 16][head_dim][16]   dimension by dimension inside a group of 16 positions
//   V[block_size][head_dim]            position by position
//
// docs/adr/0001-kv-block-layout.md says why.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "core/ids.h"
#include "tensor/dtype.h"

namespace octavo {

// Positions whose scores a kernel computes side by side: one AVX-512 register of floats, two of
// AVX2.
inline constexpr int kKeyGroup = 16;

struct KvLayout {
  int num_layers = 0;
  int num_kv_heads = 0;
  int head_dim = 0;  // of K and of V
  int block_size = 0;
  DType dtype = DType::f16;  // f32, f16 or bf16

  // Everything below REQUIRES a layout that validate() accepted, and arguments in range.

  size_t element_bytes() const { return static_cast<size_t>(info(dtype).block_bytes); }

  // Index of an element, counted from the start of the (block, layer, head) it belongs to.
  size_t k_index(int position, int dim) const {
    const auto group = static_cast<size_t>(position / kKeyGroup);
    return (group * head_dim + dim) * kKeyGroup + position % kKeyGroup;
  }
  size_t v_index(int position, int dim) const {
    return (static_cast<size_t>(block_size) + position) * head_dim + dim;
  }

  size_t bytes_per_part() const {  // K or V of one (block, layer, head)
    return static_cast<size_t>(block_size) * head_dim * element_bytes();
  }
  size_t bytes_per_head() const { return 2 * bytes_per_part(); }
  size_t bytes_per_layer_block() const { return num_kv_heads * bytes_per_head(); }
  size_t bytes_per_block() const { return num_layers * bytes_per_layer_block(); }

  // Byte offsets of K and V of a (block, head), from the start of its layer's array.
  size_t k_offset(BlockId block, int head) const {
    return raw(block) * bytes_per_layer_block() + head * bytes_per_head();
  }
  size_t v_offset(BlockId block, int head) const {
    return k_offset(block, head) + bytes_per_part();
  }
};

// invalid_argument for a count below 1, a block size or type that is not allowed, or a block of
// 2^63 bytes or more.
Result<void> validate(const KvLayout& layout);

// Bytes of `num_blocks` blocks in all layers. Errors: as validate(); invalid_argument if they come
// to 2^63 or more.
Result<size_t> storage_bytes(const KvLayout& layout, int64_t num_blocks);

}  // namespace octavo
