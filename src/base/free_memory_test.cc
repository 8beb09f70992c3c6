#include "base/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace octavo {
namespace {

constexpr int64_t kMb = 1'000'000;

// Made-up trees of /proc and /sys/fs/cgroup on a machine with 64 MB available.
class FreeMemoryInGroups : public ::testing::Test {
 protected:
  void SetUp() override { put("proc/meminfo", "MemTotal: 99999 kB\nMemAvailable: 62500 kB\n"); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  void put_v2(const std::string& group, const std::string& most, int64_t used,
              const std::string& stat) {
    put("cgroup" + group + "/memory.max", most + "\n");
    put("cgroup" + group + "/memory.current", std::to_string(used) + "\n");
    put("cgroup" + group + "/memory.stat", stat);
  }
  void put_v1(const std::string& group, const std::string& most, int64_t used,
              const std::string& stat) {
    put("cgroup/memory" + group + "/memory.limit_in_bytes", most + "\n");
    put("cgroup/memory" + group + "/memory.usage_in_bytes", std::to_string(used) + "\n");
    put("cgroup/memory" + group + "/memory.stat", stat);
  }
  std::optional<int64_t> room(const std::string& own_groups) {
    put("proc/self/cgroup", own_groups);
    return free_memory_bytes(root_ + "/proc", root_ + "/cgroup");
  }

  std::string root_ =
      (std::filesystem::temp_directory_path() / ("octavo_memory_test." + std::to_string(getpid())))
          .string();
};

TEST_F(FreeMemoryInGroups, WithoutALimitItIsWhatTheSystemHas) {
  EXPECT_EQ(room(""), 64 * kMb);
  EXPECT_EQ(room("0::/a\n"), 64 * kMb) << "no such folder";
  put_v2("/a", "max", 90 * kMb, "");
  put_v1("/a", "9223372036854771712", 90 * kMb, "hierarchical_memory_limit 9223372036854771712\n");
  EXPECT_EQ(room("4:memory:/a\n0::/a\n"), 64 * kMb);
}

TEST_F(FreeMemoryInGroups, WhatCanBeReclaimedIsNotUsed) {
  // Of the page cache ("file"), shared memory is on no list of files: it cannot be dropped.
  put_v2("", "50000000", 45 * kMb,
         "anon 9000000\nfile 33000000\nshmem 3000000\ninactive_anon 12000000\n"
         "active_file 10000000\ninactive_file 20000000\nslab_reclaimable 1000000\n"
         "slab_unreclaimable 2000000\n");
  EXPECT_EQ(room("0::/\n"), 36 * kMb);
  put_v2("", "50000000", 45 * kMb, "anon 45000000\n");
  EXPECT_EQ(room("0::/\n"), 5 * kMb);
  put_v2("", "50000000", 60 * kMb, "anon 60000000\n");
  EXPECT_EQ(room("0::/\n"), 0);
}

TEST_F(FreeMemoryInGroups, TheTightestGroupOnTheWayToTheRootCounts) {
  put_v2("", "max", 70 * kMb, "");
  put_v2("/pod", "30000000", 15 * kMb, "inactive_file 5000000\n");
  put_v2("/pod/app", "25000000", 1 * kMb, "");
  put_v2("/pod/app/child", "max", 1 * kMb, "");
  put_v2("/other", "1000000", 1 * kMb, "");
  EXPECT_EQ(room("0::/pod/app/child\n"), 20 * kMb);
  put_v2("/pod/app/child", "4000000", 1 * kMb, "");
  EXPECT_EQ(room("0::/pod/app/child\n"), 3 * kMb) << "the process's own group";
  EXPECT_EQ(room("0::/pod\n"), 20 * kMb);
}

TEST_F(FreeMemoryInGroups, TheRootCountsWhereThePathIsNotMounted) {
  put_v2("", "20000000", 8 * kMb, "");
  EXPECT_EQ(room("0::/docker/0123\n"), 12 * kMb);
  EXPECT_EQ(room("0::/../neighbour\n"), 12 * kMb);
}

TEST_F(FreeMemoryInGroups, AGroupIsSlowedDownAboveItsHighMark) {
  put_v2("/a", "50000000", 10 * kMb, "");
  put("cgroup/a/memory.high", "15000000\n");
  EXPECT_EQ(room("0::/a\n"), 5 * kMb);
}

TEST_F(FreeMemoryInGroups, VersionOne) {
  put_v1("/jobs", "40000000", 30 * kMb,
         "active_file 1000000\ninactive_file 1000000\nhierarchical_memory_limit 40000000\n"
         "total_active_file 9000000\ntotal_inactive_file 16000000\n");
  EXPECT_EQ(room("5:cpu,cpuacct:/elsewhere\n4:memory:/jobs\n0::/\n"), 35 * kMb);
  EXPECT_EQ(room("5:cpu,cpuacct:/jobs\n"), 64 * kMb);
  put_v1("", "20000000", 19 * kMb, "total_inactive_file 3000000\n");
  EXPECT_EQ(room("4:memory:/docker/0123\n"), 4 * kMb) << "mounted as a container sees it";
}

TEST_F(FreeMemoryInGroups, VersionOneKnowsTheLimitOfGroupsThatAContainerDoesNotSee) {
  put_v1("", "9223372036854771712", 10 * kMb, "hierarchical_memory_limit 16000000\n");
  EXPECT_EQ(room("4:memory:/\n"), 6 * kMb);
}

TEST_F(FreeMemoryInGroups, NonsenseIsNoLimit) {
  put_v2("", "", 10 * kMb, "inactive_file\n\ninactive_file -\n");
  EXPECT_EQ(room("0::/\nnonsense\n::\n"), 64 * kMb);
  put_v2("", "99999999999999999999999", 10 * kMb, "");
  EXPECT_EQ(room("0::/\n"), 64 * kMb);
  put_v2("", "20000000", 10 * kMb,
         "inactive_file 9223372036854775807\n"
         "active_file 9223372036854775807\n");
  EXPECT_EQ(room("0::/\n"), 20 * kMb) << "no more than the limit";
  std::filesystem::remove(root_ + "/proc/meminfo");
  EXPECT_EQ(room("0::/\n"), 20 * kMb);
  EXPECT_EQ(room(""), std::nullopt);
}

TEST(FreeMemory, ReadsTheNamedLine) {
  const std::string_view text =
      "MemTotal:       100 kB\nMemAvailable:    7 kB\nOtherMemTotal: 9 kB\n";
  EXPECT_EQ(meminfo_bytes(text, "MemTotal"), 100 * 1024);
  EXPECT_EQ(meminfo_bytes(text, "MemAvailable"), 7 * 1024);
  EXPECT_EQ(meminfo_bytes(text, "Available"), std::nullopt);
  EXPECT_EQ(meminfo_bytes(text, "Other"), std::nullopt);
}

TEST(FreeMemory, NonsenseIsNothing) {
  EXPECT_EQ(meminfo_bytes("", "MemTotal"), std::nullopt);
  EXPECT_EQ(meminfo_bytes("MemTotal: many\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(meminfo_bytes("MemTotal: 99999999999999999999 kB\n", "MemTotal"), std::nullopt);
  EXPECT_EQ(meminfo_bytes("MemTotal: 9000000000000000000 kB\n", "MemTotal"), std::nullopt);
}

}  // namespace
}  // namespace octavo
