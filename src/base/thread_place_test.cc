#include "base/thread_place.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace octavo {
namespace {

using namespace std::chrono_literals;

cpu_set_t own_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  return set;
}

// A thread that sleeps until it is let go.
class Sleeper {
 public:
  Sleeper() {
    thread_ = std::thread([&] {
      place.take();
      place.note_core();
      ready_ = true;
      ready_.notify_one();
      end_.wait(false);
      cores_ = own_cores();
    });
    ready_.wait(false);
  }
  cpu_set_t cores_at_its_end() {
    end_ = true;
    end_.notify_one();
    thread_.join();
    return cores_;
  }

  ThreadPlace place;

 private:
  std::atomic<bool> ready_{false}, end_{false};
  cpu_set_t cores_{};
  std::thread thread_;
};

TEST(ThreadPlace, TellsWhoRunsFromWhoDoesNot) {
  Sleeper sleeper;
  std::this_thread::sleep_for(20ms);  // until it sleeps
  ThreadPlace own;
  own.take();
  const int64_t asleep = sleeper.place.running_ns(), awake = own.running_ns();
  EXPECT_GT(asleep, 0);
  while (own.running_ns() < awake + 1'000'000) continue;
  EXPECT_EQ(sleeper.place.running_ns(), asleep);
  sleeper.cores_at_its_end();
}

TEST(ThreadPlace, BothMayRunWhereTheyMightBefore) {
  const cpu_set_t before = own_cores();
  Sleeper sleeper;
  ThreadPlace own;
  own.take();
  own.note_core();
  std::mutex others;
  EXPECT_EQ(own.change_with(sleeper.place, others), CPU_COUNT(&before) > 1);
  const cpu_set_t after = own_cores(), of_sleeper = sleeper.cores_at_its_end();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
  EXPECT_TRUE(CPU_EQUAL(&before, &of_sleeper));
}

TEST(ThreadPlace, WithOneCoreThereIsNothingToChange) {
  const cpu_set_t before = own_cores();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof(one), &one);
  Sleeper sleeper;
  ThreadPlace own;
  own.take();
  std::mutex others;
  EXPECT_FALSE(own.change_with(sleeper.place, others));
  sleeper.cores_at_its_end();
  sched_setaffinity(0, sizeof(before), &before);
}

TEST(ThreadPlace, NobodyWaitsForAnothersChange) {
  Sleeper sleeper;
  ThreadPlace own;
  own.take();
  std::mutex others;
  const std::lock_guard lock(others);
  bool changed = true;
  std::thread([&] {
    ThreadPlace place;
    place.take();
    changed = place.change_with(sleeper.place, others);
  }).join();
  EXPECT_FALSE(changed);
  sleeper.cores_at_its_end();
}

}  // namespace
}  // namespace octavo
