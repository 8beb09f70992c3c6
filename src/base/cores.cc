#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "base/control_groups.h"

namespace octavo {
namespace {

constexpr int kNoLimit = 1 << 20;

int affinity_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return kNoLimit;
  return std::max(1, CPU_COUNT(&set));
}

std::string read_text(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Microseconds of CPU time per period of wall time. "max" and -1 mean no limit.
int cores_of(const std::string& quota, const std::string& period) {
  const long long used = std::atoll(quota.c_str()), of = std::atoll(period.c_str());
  if (used <= 0 || of <= 0) return kNoLimit;
  return static_cast<int>(std::clamp(used / of, 1LL, static_cast<long long>(kNoLimit)));
}

int v2_cores(const std::string& group) {
  std::istringstream in(read_text(group + "/cpu.max"));  // "150000 100000"
  std::string quota, period;
  in >> quota >> period;
  return cores_of(quota, period);
}

int v1_cores(const std::string& group) {
  return cores_of(read_text(group + "/cpu.cfs_quota_us"), read_text(group + "/cpu.cfs_period_us"));
}

}  // namespace

int cgroup_cores(std::string_view own_groups, const std::string& root) {
  int least = kNoLimit;
  for (const ControlGroup& group : control_groups(own_groups, "cpu", root))
    least = std::min(least, group.version_2 ? v2_cores(group.folder) : v1_cores(group.folder));
  return least;
}

int available_cores() {
  return std::min(affinity_cores(), cgroup_cores(read_text("/proc/self/cgroup"), "/sys/fs/cgroup"));
}

}  // namespace octavo
