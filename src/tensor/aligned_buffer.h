// Zeroed memory aligned to a cache line (64 bytes), from the system page by page: untouched pages
// cost nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace octavo {

class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer();

  // dense: touched from one end to the other, so it gets 2 MB pages where the system has them: with
  // small ones reading from memory spends a quarter of its time on address translation.
  // sparse: parts of it may never be touched, so no 2 MB page may be given for the first byte in
  // it.
  enum class Use { dense, sparse };

  // resource_exhausted if the system has no such range. bytes may be 0.
  static Result<AlignedBuffer> allocate(size_t bytes, Use use = Use::dense);

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace octavo
