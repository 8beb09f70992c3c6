// Where each number of the KV cache lies in memory. Storage, kernels and estimator all count with
// this one header.
//
// One array of blocks, indexed by BlockId. A block is, for each layer in turn and each KV head of
// it, a K part and a V part, with nothing between them. In f32, f16 and bf16 they are
//
//   K[block_size / 16][head_dim][16]   dimension by dimension inside a group of 16 positions
//   V[block_size][head_dim]            position by position
//
// and in int8 groups of 16 positions, the codes in pairs, followed by scales and zeros, bf16 in the
// upper and lower half of 32 bits; a number is code * scale + zero:
//
//   K[block_size / 16] { int8 codes[head_dim / 2][16][2]; uint32 scales[16] }   pairs of dimensions
//   V[block_size / 16] { int8 codes[8][head_dim][2];      uint32 scales[16] }   pairs of positions
//
// docs/adr/0001-kv-block-layout.md says why.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "core/ids.h"
#include "kv/kv_type.h"

namespace octavo {

// Positions whose scores a kernel computes side by side: one AVX-512 register of floats, two of
// AVX2.
inline constexpr int kKeyGroup = 16;

struct KvLayout {
  int num_layers = 0;
  int num_kv_heads = 0;
  int head_dim = 0;  // of K and of V
  int block_size = 0;
  KvType type = KvType::f16;

  // Everything below REQUIRES a layout that validate() accepted, and arguments in range.

  size_t element_bytes() const { return type == KvType::f32 ? 4 : type == KvType::int8 ? 1 : 2; }

  // Where an element, or the scale of an int8 position, begins: bytes from the start of the K or V
  // of its (block, layer, head).
  size_t k_byte(int position, int dim) const {
    const auto place = static_cast<size_t>(position % kKeyGroup);
    if (type == KvType::int8)
      return group_byte(position) + (dim / 2 * size_t{kKeyGroup} + place) * 2 + dim % 2;
    return group_byte(position) + (dim * size_t{kKeyGroup} + place) * element_bytes();
  }
  size_t v_byte(int position, int dim) const {
    if (type != KvType::int8)
      return (static_cast<size_t>(position) * head_dim + dim) * element_bytes();
    const auto pair = static_cast<size_t>(position % kKeyGroup / 2);
    return group_byte(position) + (pair * head_dim + dim) * 2 + position % 2;
  }
  size_t scale_byte(int position) const {
    return group_byte(position) + size_t{kKeyGroup} * head_dim +
           position % kKeyGroup * sizeof(uint32_t);
  }

  // K or V of one position, its scale included.
  size_t bytes_per_position() const {
    return head_dim * element_bytes() + (type == KvType::int8 ? sizeof(uint32_t) : 0);
  }
  size_t bytes_per_part() const {  // K or V of one (block, layer, head)
    return static_cast<size_t>(block_size) * bytes_per_position();
  }
  size_t bytes_per_head() const { return 2 * bytes_per_part(); }
  size_t bytes_per_layer_block() const { return num_kv_heads * bytes_per_head(); }
  size_t bytes_per_block() const { return num_layers * bytes_per_layer_block(); }

  // Byte offsets of K and V of a (block, layer, head), from the start of the storage.
  size_t k_offset(BlockId block, int layer, int head) const {
    return raw(block) * bytes_per_block() + layer * bytes_per_layer_block() +
           head * bytes_per_head();
  }
  size_t v_offset(BlockId block, int layer, int head) const {
    return k_offset(block, layer, head) + bytes_per_part();
  }

 private:
  size_t group_byte(int position) const {
    return static_cast<size_t>(position / kKeyGroup) * kKeyGroup * bytes_per_position();
  }
};

// invalid_argument for a count below 1, a block size that is not allowed, int8 pairs of an odd
// head_dim, or a block of 2^63 bytes or more.
Result<void> validate(const KvLayout& layout);

// Bytes of `num_blocks` blocks in all layers. Errors: as validate(); invalid_argument if they come
// to 2^63 or more.
Result<size_t> storage_bytes(const KvLayout& layout, int64_t num_blocks);

}  // namespace octavo
