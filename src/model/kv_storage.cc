#include "model/kv_storage.h"

#include <cstring>

namespace octavo {
Result<KvStorage> KvStorage::allocate(const KvLayout& layout, int num_blocks) {
  KvStorage storage;
  storage.layout_ = layout;
  storage.num_blocks_ = num_blocks;
  OCTAVO_TRY(const size_t bytes, storage_bytes(layout, num_blocks));
  OCTAVO_TRY(storage.memory_, AlignedBuffer::allocate(bytes, AlignedBuffer::Use::sparse));
  return storage;
}

uint8_t* KvStorage::layer_base(int index) {
  return memory_.data() + static_cast<size_t>(index) * static_cast<size_t>(num_blocks_) *
                              layout_.bytes_per_layer_block();
}

kernels::KvLayer KvStorage::layer(int index) {
  return {.base = layer_base(index),
          .block_stride = layout_.bytes_per_layer_block(),
          .head_stride = layout_.bytes_per_head(),
          .v_offset = layout_.bytes_per_part(),
          .block_size = layout_.block_size,
          .head_dim = layout_.head_dim,
          .type = layout_.type};
}

void KvStorage::copy_block(BlockId from, BlockId to) {
  for (int i = 0; i < layout_.num_layers; ++i) {
    uint8_t* layer = layer_base(i);
    std::memcpy(layer + layout_.k_offset(to, 0), layer + layout_.k_offset(from, 0),
                layout_.bytes_per_layer_block());
  }
}

}  // namespace octavo
