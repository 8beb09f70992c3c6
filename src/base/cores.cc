#include "base/cores.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

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

// The least of a group's and its parents' quotas. A container may see the path of a group that is
// not mounted in it, its own group standing at the root: the root always counts.
int least_on_path(const std::string& root, std::string path, int (*cores)(const std::string&)) {
  int least = cores(root);
  if (path.find("..") != std::string::npos) return least;  // outside of what is mounted
  while (path.size() > 1) {
    least = std::min(least, cores(root + path));
    path.resize(path.rfind('/'));
  }
  return least;
}

bool lists(const std::string& controllers, std::string_view wanted) {
  std::istringstream in(controllers);
  for (std::string name; std::getline(in, name, ',');)
    if (name == wanted) return true;
  return false;
}

}  // namespace

int cgroup_cores(std::string_view own_groups, const std::string& root) {
  int least = kNoLimit;
  std::istringstream lines{std::string(own_groups)};
  // "number:controllers:/path"; version 2 has number 0 and no controllers.
  for (std::string number, controllers, path; std::getline(lines, number, ':') &&
                                              std::getline(lines, controllers, ':') &&
                                              std::getline(lines, path);) {
    if (path.empty() || path.front() != '/') continue;
    if (controllers.empty())
      least = std::min(least, least_on_path(root, path, v2_cores));
    else if (lists(controllers, "cpu"))
      for (const std::string& mount : {controllers, std::string("cpu")})
        least = std::min(least, least_on_path(root + "/" + mount, path, v1_cores));
  }
  return least;
}

int available_cores() {
  return std::min(affinity_cores(), cgroup_cores(read_text("/proc/self/cgroup"), "/sys/fs/cgroup"));
}

}  // namespace octavo
