// How much memory this process could still take without pushing others out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace octavo {

// The least of what the system calls available and of what each control group around this process
// still has room for. What can be reclaimed, the page cache above all, is room. Nothing: the system
// does not say.
std::optional<int64_t> free_memory_bytes();

// The same read from other folders than /proc and /sys/fs/cgroup.
std::optional<int64_t> free_memory_bytes(const std::string& proc, const std::string& cgroups);

// The bytes of a line "NAME:  123 kB" of /proc/meminfo.
std::optional<int64_t> meminfo_bytes(std::string_view meminfo, std::string_view name);

}  // namespace octavo
