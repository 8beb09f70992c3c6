// How many cores this process may really use.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// CPU affinity and the quotas of all control groups around this process, rounded down; at least 1.
int available_cores();

// The quota alone. own_groups: the text of /proc/self/cgroup, one line for each hierarchy; root:
// where these are mounted, /sys/fs/cgroup. No quota, or none that can be read: a very large number.
int cgroup_cores(std::string_view own_groups, const std::string& root);

}  // namespace octavo
