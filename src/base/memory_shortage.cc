#include "base/memory_shortage.h"

#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <thread>

namespace octavo {
namespace {

// The system's hook has no argument, so these cannot be members.
std::atomic<std::chrono::milliseconds::rep> patience_ms = 0;  // 0: nobody waits
std::atomic<void*> reserve_of_all = nullptr;
thread_local int may_run_out = 0;
thread_local bool gives_up_sooner = false;
thread_local std::chrono::steady_clock::time_point waits_since, failed_at;

// Never touched, so that it takes addresses and no memory: for two million values of a JSON text,
// whose destructor needs 16 bytes for each of an array's, with as much again.
constexpr size_t kReserveBytes = size_t{64} << 20;
constexpr std::chrono::milliseconds kLookAgain{5};
constexpr size_t kTooFewToAsk = 1 << 20;
constexpr int kSooner = 10;     // times less patient
constexpr int kUnwinding = 10;  // times as patient: it goes before others, who end in the meantime
// Two failures that are further apart belong to two waits.
constexpr std::chrono::milliseconds kOneWait = 10 * kLookAgain;

bool use_reserve() {
  void* reserve = reserve_of_all.exchange(nullptr);
  std::free(reserve);
  return reserve != nullptr;
}

// Called by `new` until it returns memory; it returns to have that tried again.
void wait_for_memory() {
  // A destructor that takes memory: to fail would end the program, and it gives back more.
  const bool is_unwinding = std::uncaught_exceptions() > 0;
  if (may_run_out > 0 && !is_unwinding) throw std::bad_alloc();
  if (is_unwinding && use_reserve()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - failed_at > kOneWait) waits_since = now;
  failed_at = now;
  std::chrono::milliseconds patience(patience_ms);
  if (gives_up_sooner) patience /= kSooner;
  if (is_unwinding) patience = kUnwinding * std::chrono::milliseconds(patience_ms);
  if (now - waits_since < patience)
    std::this_thread::sleep_for(kLookAgain);
  else if (gives_up_sooner || !use_reserve())
    throw std::bad_alloc();
}

void keep_reserve() {
  void* none = nullptr;
  void* reserve = std::malloc(kReserveBytes);
  if (!reserve_of_all.compare_exchange_strong(none, reserve)) std::free(reserve);
}

}  // namespace

MemoryShortage::MemoryShortage(std::chrono::milliseconds patience) {
  patience_ms = patience.count();
  keep_reserve();
  std::set_new_handler(&wait_for_memory);
}

MemoryShortage::~MemoryShortage() {
  std::set_new_handler(nullptr);
  patience_ms = 0;
  std::free(reserve_of_all.exchange(nullptr));
}

MayRunOutOfMemory::MayRunOutOfMemory() {
  // An earlier shortage may have used it up.
  if (patience_ms > 0 && !reserve_of_all) keep_reserve();
  ++may_run_out;
}

MayRunOutOfMemory::~MayRunOutOfMemory() { --may_run_out; }

void give_up_memory_sooner() { gives_up_sooner = true; }

bool system_would_give(size_t bytes) {
  if (bytes < kTooFewToAsk) return true;
  void* there = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return there != MAP_FAILED && ::munmap(there, bytes) == 0;
}

}  // namespace octavo
