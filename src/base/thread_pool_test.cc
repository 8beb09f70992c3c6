#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <numeric>

namespace octavo {
namespace {

TEST(ThreadPool, CoversEveryIndexOnce) {
  for (int threads : {1, 2, 3, 7}) {
    const auto pool = *ThreadPool::create(threads);
    for (int64_t count : {0, 1, 2, 6, 7, 1000}) {
      std::vector<int> hits(static_cast<size_t>(count));
      pool->parallel_for(count, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
      });
      EXPECT_EQ(std::count(hits.begin(), hits.end(), 1), count) << threads << " threads";
    }
  }
}

TEST(ThreadPool, ManyShortJobsAndSleepsBetween) {
  const auto pool = *ThreadPool::create(3);
  int64_t total = 0;
  for (int job = 0; job < 2000; ++job) {
    std::vector<int64_t> sums(64);
    pool->parallel_for(64, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sums[static_cast<size_t>(i)] = i;
    });
    total += std::accumulate(sums.begin(), sums.end(), int64_t{0});
    if (job % 500 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // lets the workers fall asleep
  }
  EXPECT_EQ(total, 2000 * 63 * 64 / 2);
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // they reserve terabytes themselves
TEST(ThreadPool, ARefusedThreadIsAnErrorAndTheOthersEnd) {
  // In a child: the limit would outlive the test. 1 GB of address space does not hold 500 stacks of
  // 8 MB.
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{size_t{1} << 30, size_t{1} << 30};
    setrlimit(RLIMIT_AS, &limit);
    const auto pool = ThreadPool::create(500);
    _exit(!pool && pool.error().code == ErrorCode::resource_exhausted ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}
#endif

TEST(AvailableCores, IsAtLeastOneAndNotMoreThanTheMachineHas) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace octavo
