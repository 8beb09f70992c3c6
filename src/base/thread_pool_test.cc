#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

TEST(ThreadPool, ATeamMeetsAtBarriers) {
  const auto pool = *ThreadPool::create(4);
  for (int threads : {1, 2, 4, 3}) {
    // Every thread writes its slot, then reads all: a barrier that lets one through early shows.
    std::vector<int> slots(static_cast<size_t>(threads));
    std::atomic<int> wrong{0};
    pool->run(threads, [&](Team& team) {
      for (int round = 1; round <= 500; ++round) {
        slots[static_cast<size_t>(team.index())] = round;
        team.barrier();
        wrong += threads - static_cast<int>(std::count(slots.begin(), slots.end(), round));
        team.barrier();
      }
    });
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

TEST(ThreadPool, SharedWorkIsDoneOnceBetweenTwoBarriers) {
  const auto pool = *ThreadPool::create(3);
  std::vector<int> shared(1001), each(77);
  pool->run(3, [&](Team& team) {
    for (int round = 0; round < 50; ++round) {
      team.share(1001, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++shared[static_cast<size_t>(i)];
      });
      team.barrier();
      team.each(77, [&](int64_t i) { ++each[static_cast<size_t>(i)]; });
      team.barrier();
    }
  });
  EXPECT_EQ(std::count(shared.begin(), shared.end(), 50), 1001);
  EXPECT_EQ(std::count(each.begin(), each.end(), 50), 77);
}

// A thread that is late, because its core was taken away, does not hold up what others can do.
TEST(ThreadPool, OthersTakeTheRestOfALateThreadsWork) {
  const auto pool = *ThreadPool::create(2);
  std::array<std::atomic<int>, 2> done{};
  std::atomic<bool> late{true};
  pool->run(2, [&](Team& team) {
    team.share(100, [&](int64_t begin, int64_t end) {
      done[static_cast<size_t>(team.index())] += static_cast<int>(end - begin);
      while (team.index() == 1 && late) std::this_thread::yield();
    });
    late = false;
  });
  EXPECT_EQ(done[1], 38);  // its fixed range
  EXPECT_EQ(done[0], 62);
}

TEST(ThreadPool, IdleWorkersSleepInTheKernel) {
  const auto pool = *ThreadPool::create(4);
  pool->parallel_for(100, [](int64_t, int64_t) {});
  while (pool->num_asleep() < 3) std::this_thread::yield();
  const auto cpu_seconds = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  };
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LT(cpu_seconds() - before, 0.15);  // one thread awake would use twice that
  EXPECT_EQ(pool->num_asleep(), 3);
}

}  // namespace
}  // namespace octavo
