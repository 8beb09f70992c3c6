// The control groups (cgroups) whose limits hold for this process.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo {

struct ControlGroup {
  bool version_2;
  std::string folder;  // of its files; it need not exist
};

// The process's own group and all above it, in each hierarchy that may have `controller` ("cpu",
// "memory"). own_groups: the text of /proc/self/cgroup, one line for each hierarchy; root: where
// these are mounted, /sys/fs/cgroup.
std::vector<ControlGroup> control_groups(std::string_view own_groups, std::string_view controller,
                                         const std::string& root);

}  // namespace octavo
