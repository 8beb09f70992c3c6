#include "base/lost_file_guard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace octavo {
namespace {

constexpr int kSlots = 64;
constexpr size_t kShownPath = 512;  // bytes; of a longer path the end is shown
constexpr uintptr_t kFree = 0;
constexpr uintptr_t kTaken = 1;  // being filled in

struct Slot {
  std::atomic<uintptr_t> begin{kFree};  // written last
  uintptr_t end = 0;
  std::array<char, kShownPath> path{};
  size_t path_size = 0;
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

std::array<Slot, kSlots> slots;
struct sigaction previous {};

int take_slot() {
  for (int i = 0; i < kSlots; ++i) {
    uintptr_t expected = kFree;
    if (slots[static_cast<size_t>(i)].begin.compare_exchange_strong(expected, kTaken)) return i;
  }
  return -1;
}

// What follows runs inside a signal handler: write(2), _exit(2), and nothing that allocates or
// locks.

void print(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

const Slot* find_slot(uintptr_t address) {
  for (const Slot& slot : slots) {
    const uintptr_t begin = slot.begin.load(std::memory_order_acquire);
    if (begin > kTaken && address >= begin && address < slot.end) return &slot;
  }
  return nullptr;
}

extern "C" void on_lost_page(int, siginfo_t* info, void*) {
  const Slot* slot = find_slot(reinterpret_cast<uintptr_t>(info->si_addr));
  if (!slot) {  // not ours: the access is repeated and meets whoever was there before
    ::sigaction(SIGBUS, &previous, nullptr);
    return;
  }
  // A line of progress may stand on the terminal.
  if (::isatty(STDERR_FILENO)) print("\r\x1b[K");
  print("octavo: error: ");
  print({slot->path.data(), slot->path_size});
  print(
      ": was shortened, or could not be read, while it was in use; restore the file and start "
      "again [io_error]\n");
  ::_exit(exit_code(ErrorCode::io_error));
}

}  // namespace

void end_program_when_mapped_file_is_lost() {
  struct sigaction action {};
  action.sa_sigaction = on_lost_page;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, &previous);
}

MappedRange::MappedRange(std::span<const std::byte> range, const std::string& path)
    : slot_(take_slot()) {
  if (slot_ < 0) return;
  Slot& slot = slots[static_cast<size_t>(slot_)];
  const auto begin = reinterpret_cast<uintptr_t>(range.data());
  slot.end = begin + range.size();
  slot.path_size = std::min(path.size(), slot.path.size());
  std::memcpy(slot.path.data(), path.data() + path.size() - slot.path_size, slot.path_size);
  // The line must stay one line, whatever the file is called.
  std::replace_if(
      slot.path.begin(), slot.path.end(), [](unsigned char c) { return c < 32 || c == 127; }, '?');
  slot.begin.store(begin, std::memory_order_release);
}

MappedRange::MappedRange(MappedRange&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

MappedRange& MappedRange::operator=(MappedRange&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

MappedRange::~MappedRange() {
  if (slot_ >= 0) slots[static_cast<size_t>(slot_)].begin.store(kFree, std::memory_order_release);
}

}  // namespace octavo
