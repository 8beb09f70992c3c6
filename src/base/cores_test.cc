#include "base/cores.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace octavo {
namespace {

class CgroupCores : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  bool limits(const std::string& own_groups) { return cgroup_cores(own_groups, root_) < 1000; }

  std::string root_ =
      (std::filesystem::temp_directory_path() / ("octavo_cores_test." + std::to_string(getpid())))
          .string();
};

TEST_F(CgroupCores, NoGroupNoLimit) {
  EXPECT_FALSE(limits(""));
  EXPECT_FALSE(limits("0::/somewhere\n"));
  EXPECT_FALSE(limits("no cgroup file at all"));
}

TEST_F(CgroupCores, TheTightestGroupOnTheWayToTheRootCounts) {
  put("cpu.max", "max 100000\n");
  put("a/cpu.max", "300000 100000\n");
  put("a/b/cpu.max", "max 100000\n");
  put("a/b/c/cpu.max", "550000 100000\n");
  put("other/cpu.max", "100000 100000\n");
  EXPECT_EQ(cgroup_cores("0::/a/b/c\n", root_), 3);
  EXPECT_EQ(cgroup_cores("0::/a\n", root_), 3);
  EXPECT_FALSE(limits("0::/\n"));
}

TEST_F(CgroupCores, RoundsDownToAtLeastOne) {
  put("a/cpu.max", "250000 100000\n");
  put("b/cpu.max", "50000 100000\n");
  EXPECT_EQ(cgroup_cores("0::/a\n", root_), 2);
  EXPECT_EQ(cgroup_cores("0::/b\n", root_), 1);
}

TEST_F(CgroupCores, TheRootCountsWhereThePathIsNotMounted) {
  put("cpu.max", "400000 100000\n");
  EXPECT_EQ(cgroup_cores("0::/docker/0123\n", root_), 4);
  EXPECT_EQ(cgroup_cores("0::/../neighbour\n", root_), 4);
}

TEST_F(CgroupCores, VersionOne) {
  put("cpu,cpuacct/jobs/cpu.cfs_quota_us", "200000\n");
  put("cpu,cpuacct/jobs/cpu.cfs_period_us", "100000\n");
  put("cpu/cpu.cfs_quota_us", "-1\n");
  put("cpu/cpu.cfs_period_us", "100000\n");
  put("cpu/deep/cpu.cfs_quota_us", "300000\n");
  put("cpu/deep/cpu.cfs_period_us", "50000\n");
  EXPECT_EQ(cgroup_cores("4:memory:/x\n3:cpu,cpuacct:/jobs\n0::/\n", root_), 2);
  EXPECT_EQ(cgroup_cores("3:cpu:/deep\n", root_), 6);
  EXPECT_FALSE(limits("2:cpuacct:/jobs\n1:cpu:/\n"));
}

TEST(AvailableCores, IsAtLeastOneAndNotMoreThanTheMachineHas) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace octavo
