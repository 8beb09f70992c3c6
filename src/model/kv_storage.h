// The memory of the KV cache: all blocks of all layers, laid out by KvLayout. Which block belongs
// to whom is kv/'s business.
#pragma once

#include "base/result.h"
#include "core/ids.h"
#include "kernels/api.h"
#include "kv/kv_layout.h"
#include "tensor/aligned_buffer.h"

namespace octavo {

class KvStorage {
 public:
  // Address space for num_blocks blocks; the system gives memory as blocks are first written, 2 MB
  // at a time.
  static Result<KvStorage> allocate(const KvLayout& layout, int num_blocks);

  const KvLayout& layout() const { return layout_; }
  kernels::KvLayer layer(int index);
  void copy_block(BlockId from, BlockId to);

 private:
  KvLayout layout_;
  AlignedBuffer memory_;
};

}  // namespace octavo
