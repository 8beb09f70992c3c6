#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <random>

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

TEST(ThreadPool, ATeamMeets) {
  const auto pool = *ThreadPool::create(4);
  for (int threads : {1, 2, 4, 3}) {
    // Every thread writes its slot, then reads all: one that is let through early shows.
    std::vector<int> slots(static_cast<size_t>(threads));
    std::atomic<int> wrong{0};
    pool->run(threads, [&](Team& team) {
      for (int round = 1; round <= 500; ++round) {
        slots[static_cast<size_t>(team.index())] = round;
        team.meet();
        wrong += threads - static_cast<int>(std::count(slots.begin(), slots.end(), round));
        team.meet();
      }
    });
    EXPECT_EQ(wrong, 0) << threads << " threads";
  }
}

TEST(ThreadPool, SharedWorkIsDoneOncePerPhase) {
  const auto pool = *ThreadPool::create(3);
  std::vector<int> shared(1001), even(1001), each(77);
  int once = 0;
  const auto count = [](std::vector<int>& hits, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
  };
  pool->run(3, [&](Team& team) {
    for (int round = 0; round < 50; ++round) {
      team.share(1001, [&](int64_t begin, int64_t end) { count(shared, begin, end); });
      team.barrier();
      team.each(77, [&](int64_t i) { count(each, i, i + 1); });
      team.once([&] { ++once; });  // begins when the phase before is over, with or without barrier
      team.share(0, [&](int64_t, int64_t) { once = -1; });
      team.share(
          1001, [&](int64_t begin, int64_t end) { count(even, begin, end); }, Team::Sharing::even);
    }
  });
  EXPECT_EQ(std::count(shared.begin(), shared.end(), 50), 1001);
  EXPECT_EQ(std::count(even.begin(), even.end(), 50), 1001);
  EXPECT_EQ(std::count(each.begin(), each.end(), 50), 77);
  EXPECT_EQ(once, 50);
}

// A thread that is late, because its core was taken away, does not hold up what others can do.
TEST(ThreadPool, OthersTakeTheRestOfALateThreadsWork) {
  for (const auto& [sharing, held] :
       {std::pair(Team::Sharing::balanced, 38), {Team::Sharing::even, 14}}) {
    const auto pool = *ThreadPool::create(2);
    std::array<std::atomic<int>, 2> done{};
    std::atomic<bool> holds{false}, late{true};
    pool->run(2, [&](Team& team) {
      team.share(
          100,
          [&](int64_t begin, int64_t end) {
            done[static_cast<size_t>(team.index())] += static_cast<int>(end - begin);
            while (team.index() == 0 && !holds) std::this_thread::yield();
            holds = true;
            if (done[0] + done[1] == 100) late = false;
            while (team.index() == 1 && late) std::this_thread::yield();
          },
          sharing);
    });
    EXPECT_EQ(done[1], held) << "its first piece";
    EXPECT_EQ(done[0], 100 - held);
  }
}

TEST(ThreadPool, AThreadWithoutWorkDelaysNobody) {
  const auto pool = *ThreadPool::create(2);
  std::atomic<bool> over{false};
  std::array<int, 2> done{};
  pool->run(2, [&](Team& team) {
    while (team.index() == 1 && !over) std::this_thread::yield();
    for (int round = 0; round < 100; ++round) {
      team.share(10, [&](int64_t begin, int64_t end) {
        done[static_cast<size_t>(team.index())] += static_cast<int>(end - begin);
      });
      team.each(1, [&](int64_t) { ++done[static_cast<size_t>(team.index())]; });
      team.barrier();
    }
    over = true;
  });
  EXPECT_EQ(done[0], 1100);
  EXPECT_EQ(done[1], 0) << "all was over when it came";
}

// Each phase reads what the one before has written, while threads are held up here and there.
TEST(ThreadPool, LateThreadsSeeWhatWasWritten) {
  constexpr int64_t kCount = 40;
  constexpr int kRounds = 2000;
  std::vector<int64_t> expected(kCount), now(kCount), next(kCount);
  for (int round = 0; round < kRounds; ++round) {
    for (int64_t i = 0; i < kCount; ++i)
      next[static_cast<size_t>(i)] = 3 * expected[static_cast<size_t>((i + 7) % kCount)] % 1009 + i;
    std::swap(expected, next);
  }
  const auto pool = *ThreadPool::create(4);
  for (const int threads : {4, 2, 3}) {
    std::fill(now.begin(), now.end(), 0);
    pool->run(threads, [&](Team& team) {
      std::minstd_rand random(static_cast<uint32_t>(team.index() + 1));
      for (int round = 0; round < kRounds; ++round) {
        const auto& from = round % 2 == 0 ? now : next;
        auto& to = round % 2 == 0 ? next : now;
        if (random() % 50 == 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
        team.share(kCount, [&](int64_t begin, int64_t end) {
          if (random() % 200 == 0) std::this_thread::yield();
          for (int64_t i = begin; i < end; ++i)
            to[static_cast<size_t>(i)] = 3 * from[static_cast<size_t>((i + 7) % kCount)] % 1009 + i;
        });
        if (random() % 2 == 0) team.barrier();
      }
    });
    EXPECT_EQ(now, expected) << threads << " threads";
  }
}

// Who is told of a run and comes when another one is going on takes part in that, if it may.
TEST(ThreadPool, ShortRunsOfTeamsOfAllSizes) {
  const auto pool = *ThreadPool::create(4);
  std::atomic<int> wrong{0};
  int64_t sum = 0;
  for (int run = 0; run < 3000; ++run) {
    const int threads = 1 + run % 4;
    pool->run(threads, [&](Team& team) {
      wrong += team.size() != threads || team.index() >= threads;
      team.once([&] { sum += run; });
    });
  }
  EXPECT_EQ(sum, 2999 * 3000 / 2);
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, OnEachThreadAtOnce) {
  const auto pool = *ThreadPool::create(3);
  for (int round = 1; round <= 100; ++round) {
    std::array<std::atomic<int>, 3> calls{};
    std::atomic<int> here{0};
    pool->on_each_thread([&](int index) {
      ++calls[static_cast<size_t>(index)];
      ++here;
      while (here < 3) std::this_thread::yield();
    });
    for (const auto& count : calls) ASSERT_EQ(count, 1);
  }
}

// Threads that wait for one which does not run change cores with it, for a moment.
TEST(ThreadPool, ThreadsMayUseTheSameCoresAfterwards) {
  const auto cores = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof(set), &set);
    return set;
  };
  const cpu_set_t before = cores();
  const auto pool = *ThreadPool::create(3);
  for (int round = 0; round < 20; ++round)
    pool->run(3, [&](Team& team) {
      team.each(3, [&](int64_t i) {
        if (i == round % 3) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      });
    });
  std::atomic<int> same{0};
  pool->on_each_thread([&](int) {
    const cpu_set_t after = cores();
    same += CPU_EQUAL(&before, &after) ? 1 : 0;
  });
  EXPECT_EQ(same, 3);
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
