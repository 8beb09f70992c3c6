#include "server/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace octavo {
namespace {

TEST(Workers, FinishWhatWasHandedOver) {
  std::atomic<int> done = 0;
  {
    Workers workers(2);
    for (int i = 0; i < 100; ++i) {
      workers.post([&] { ++done; });
      workers.post([&] { ++done; }, Workers::Length::lengthy);
    }
  }
  EXPECT_EQ(done, 200);
}

// If they did, this would wait for ever.
TEST(Workers, LengthyWorkNeverTakesAllThreads) {
  std::promise<void> release;
  const std::shared_future<void> released(release.get_future());
  Workers workers(3);
  for (int i = 0; i < 10; ++i) workers.post([&] { released.wait(); }, Workers::Length::lengthy);
  for (int i = 0; i < 10; ++i) {
    std::promise<void> done;
    workers.post([&] { done.set_value(); });
    done.get_future().wait();
  }
  release.set_value();
}

TEST(Workers, OneThreadDoesBoth) {
  std::atomic<int> done = 0;
  {
    Workers workers(1);
    workers.post([&] { ++done; }, Workers::Length::lengthy);
    workers.post([&] { ++done; });
  }
  EXPECT_EQ(done, 2);
}

}  // namespace
}  // namespace octavo
