#include "tensor/aligned_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <utility>

namespace octavo {
namespace {

constexpr size_t kHugePage = size_t{2} << 20, kPage = 4096;

}  // namespace

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
  const bool huge = use == Use::dense && bytes >= kHugePage;
  // A 2 MB page begins at a multiple of 2 MB: ask for more and give the ends back.
  const size_t asked = huge ? bytes + kHugePage : bytes;
  void* memory = asked < bytes ? MAP_FAILED
                               : mmap(nullptr, asked, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(
        ErrorCode::resource_exhausted,
        fmt::format("the system refused {} bytes of memory; free some or ask for less", bytes));
  buffer.data_ = static_cast<uint8_t*>(memory);
  if (huge) {
    const size_t before = -reinterpret_cast<uintptr_t>(memory) % kHugePage;
    if (before > 0) munmap(memory, before);
    buffer.data_ += before;
    const size_t kept = (bytes + kPage - 1) / kPage * kPage;
    if (asked > before + kept) munmap(buffer.data_ + kept, asked - before - kept);
  }
  buffer.size_ = bytes;
  // A refusal costs speed or memory only.
  madvise(buffer.data_, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  return buffer;
}

}  // namespace octavo
