// What a failed `new` means, by what it is for. Work that may be given up gets std::bad_alloc at
// once; as that gives back what it held, every other thread waits for memory instead of ending the
// program.
#pragma once

#include <chrono>
#include <cstddef>

namespace octavo {

// As long as it lives, a thread that cannot have memory waits for it, `patience` at most, and gets
// std::bad_alloc only then (std::set_new_handler). Some is kept for destructors that take memory
// while std::bad_alloc ends a request, and for who has waited in vain. One at a time in a program.
class MemoryShortage {
 public:
  explicit MemoryShortage(std::chrono::milliseconds patience);
  ~MemoryShortage();

  MemoryShortage(const MemoryShortage&) = delete;
  MemoryShortage& operator=(const MemoryShortage&) = delete;
};

// For a thread whose failures end one request only: it is not as patient as those that all depend
// on, and leaves them what is kept.
void give_up_memory_sooner();

// What this thread does in the meantime may be given up: somebody catches std::bad_alloc.
class MayRunOutOfMemory {
 public:
  MayRunOutOfMemory();
  ~MayRunOutOfMemory();
  MayRunOutOfMemory(const MayRunOutOfMemory&) = delete;
  MayRunOutOfMemory& operator=(const MayRunOutOfMemory&) = delete;
};

// Whether the process may have so many bytes more at this moment: limits on its addresses
// (RLIMIT_AS) and a system that promises no more than it has (vm.overcommit_memory) say no.
bool system_would_give(size_t bytes);

}  // namespace octavo
