#include "base/free_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <sstream>

#include "base/control_groups.h"

namespace octavo {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::optional<int64_t> parse_number(std::string_view text) {
  const size_t digit = text.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + digit, text.data() + text.size(), value);
  static_cast<void>(end);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// No group has as much; version 1 writes a number of about 2^63 where it sets no limit.
constexpr int64_t kNoLimit = int64_t{1} << 60;

// Of a file that holds one number; no limit if there is none or it is "max".
int64_t limit_in(const std::string& file) {
  return std::min(parse_number(read_file(file)).value_or(kNoLimit), kNoLimit);
}

// The sum of the named lines "NAME 123" of a memory.stat.
int64_t sum_of(const std::string& stat, std::initializer_list<std::string_view> names) {
  int64_t sum = 0;
  std::istringstream lines(stat);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view name = std::string_view(line).substr(0, line.find(' '));
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    const int64_t value = parse_number(line.substr(name.size())).value_or(0);
    sum = std::min(sum + std::min(value, kNoLimit), kNoLimit);
  }
  return sum;
}

// Of the page cache, only what is in no list of files stays: shared memory, and what is locked.
int64_t room_of(int64_t limit, const std::string& used_file, int64_t reclaimable) {
  if (limit == kNoLimit) return kNoLimit;
  const int64_t used = parse_number(read_file(used_file)).value_or(0);
  return std::max<int64_t>(limit - std::max<int64_t>(used - reclaimable, 0), 0);
}

// Above memory.high a group is slowed down until it has given memory back.
int64_t v2_room(const std::string& group) {
  const int64_t limit = std::min(limit_in(group + "/memory.max"), limit_in(group + "/memory.high"));
  const std::string stat = read_file(group + "/memory.stat");
  return room_of(limit, group + "/memory.current",
                 sum_of(stat, {"active_file", "inactive_file", "slab_reclaimable"}));
}

// The lines with "total_" count the groups below as well, as the usage does; the hierarchical limit
// also knows groups above that a container does not see.
int64_t v1_room(const std::string& group) {
  const std::string stat = read_file(group + "/memory.stat");
  const int64_t above = sum_of(stat, {"hierarchical_memory_limit"});
  const int64_t limit =
      std::min(limit_in(group + "/memory.limit_in_bytes"), above > 0 ? above : kNoLimit);
  return room_of(limit, group + "/memory.usage_in_bytes",
                 sum_of(stat, {"total_active_file", "total_inactive_file"}));
}

std::optional<int64_t> cgroup_room(std::string_view own_groups, const std::string& root) {
  int64_t least = kNoLimit;
  for (const ControlGroup& group : control_groups(own_groups, "memory", root))
    least = std::min(least, group.version_2 ? v2_room(group.folder) : v1_room(group.folder));
  return least == kNoLimit ? std::nullopt : std::optional(least);
}

}  // namespace

std::optional<int64_t> meminfo_bytes(std::string_view meminfo, std::string_view name) {
  const std::string key = std::string(name) + ":";
  for (size_t at = meminfo.find(key); at != std::string_view::npos;
       at = meminfo.find(key, at + 1)) {
    if (at != 0 && meminfo[at - 1] != '\n') continue;
    const std::string_view line = meminfo.substr(at, meminfo.find('\n', at) - at);
    const auto kib = parse_number(line.substr(key.size()));
    return kib && *kib < (int64_t{1} << 50) ? std::optional(*kib * 1024) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<int64_t> free_memory_bytes() { return free_memory_bytes("/proc", "/sys/fs/cgroup"); }

std::optional<int64_t> free_memory_bytes(const std::string& proc, const std::string& cgroups) {
  const auto system = meminfo_bytes(read_file(proc + "/meminfo"), "MemAvailable");
  const auto cgroup = cgroup_room(read_file(proc + "/self/cgroup"), cgroups);
  if (!system || !cgroup) return system ? system : cgroup;
  return std::min(*system, *cgroup);
}

}  // namespace octavo
