#include "model/kv_storage.h"

#include <cstring>

namespace octavo {
Result<KvStorage> KvStorage::allocate(const KvLayout& layout, int num_blocks) {
  KvStorage storage;
  storage.layout_ = layout;
  OCTAVO_TRY(const size_t bytes, storage_bytes(layout, num_blocks));
  OCTAVO_TRY(storage.memory_, AlignedBuffer::allocate(bytes));
  return storage;
}

kernels::KvLayer KvStorage::layer(int index) {
  return {.base = memory_.data() + layout_.k_offset(BlockId{0}, index, 0),
          .block_stride = layout_.bytes_per_block(),
          .head_stride = layout_.bytes_per_head(),
          .v_offset = layout_.bytes_per_part(),
          .block_size = layout_.block_size,
          .head_dim = layout_.head_dim,
          .type = layout_.type};
}

void KvStorage::copy_block(BlockId from, BlockId to) {
  std::memcpy(memory_.data() + layout_.k_offset(to, 0, 0),
              memory_.data() + layout_.k_offset(from, 0, 0), layout_.bytes_per_block());
}

}  // namespace octavo
