#include "tensor/aligned_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <utility>

namespace octavo {

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_) munmap(data_, size_);
}

Result<AlignedBuffer> AlignedBuffer::allocate(size_t bytes, Use use) {
  AlignedBuffer buffer;
  if (bytes == 0) return buffer;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(
        ErrorCode::resource_exhausted,
        fmt::format("the system refused {} bytes of memory; free some or ask for less", bytes));
  if (use == Use::sparse) madvise(memory, bytes, MADV_NOHUGEPAGE);
  buffer.data_ = static_cast<uint8_t*>(memory);
  buffer.size_ = bytes;
  return buffer;
}

}  // namespace octavo
