#include "base/memory_shortage.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <thread>

namespace octavo {
namespace {

using std::chrono::milliseconds;

// What no machine has. Volatile, so that the compiler does not know.
volatile size_t beyond = size_t{1} << 46;

void ask_too_much() { ::operator delete(::operator new(beyond)); }

class MemoryShortageTest : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers end a program whose memory runs out";
#endif
  }
};

TEST_F(MemoryShortageTest, WorkThatMayBeGivenUpFailsAtOnce) {
  const MemoryShortage shortage(std::chrono::hours(1));
  const MayRunOutOfMemory this_work;
  EXPECT_THROW(ask_too_much(), std::bad_alloc);
}

TEST_F(MemoryShortageTest, OtherThreadsWaitAsLongAsAgreed) {
  const MemoryShortage shortage(milliseconds(100));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(ask_too_much(), std::bad_alloc);
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(100));
}

TEST_F(MemoryShortageTest, WithoutItNothingWaits) {
  { const MemoryShortage shortage(std::chrono::hours(1)); }
  EXPECT_THROW(ask_too_much(), std::bad_alloc);
}

// Bytes of addresses in use.
size_t address_space() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

// Runs in a process of its own, which is left with less than a block's room for addresses.
[[noreturn]] void wait_for_a_block_and_exit() {
  constexpr size_t kBlock = size_t{256} << 20;
  const MemoryShortage shortage(std::chrono::hours(1));
  std::atomic<bool> is_limited = false;
  auto held = std::make_unique<char[]>(kBlock);
  std::thread who_waits([&] {
    is_limited.wait(false);
    ::operator delete(::operator new(kBlock));
  });
  const size_t limit = address_space() + kBlock / 2;
  const rlimit most{limit, limit};
  bool works = ::setrlimit(RLIMIT_AS, &most) == 0;
  is_limited = true;
  is_limited.notify_one();
  {
    const MayRunOutOfMemory this_work;
    works &= ::operator new(kBlock, std::nothrow) == nullptr;
  }
  std::this_thread::sleep_for(milliseconds(50));
  held.reset();
  who_waits.join();
  std::_Exit(works ? 0 : 1);
}

TEST_F(MemoryShortageTest, WhoWaitsGoesOnWhenThereIsMemoryAgain) {
  EXPECT_EXIT(wait_for_a_block_and_exit(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace octavo
