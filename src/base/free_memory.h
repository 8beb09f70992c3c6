// How much memory this process could still take without pushing others out.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace octavo {

// What the system calls available, or what its cgroup leaves if that is less. Nothing: it does not
// say.
std::optional<int64_t> free_memory_bytes();

// The bytes of a line "NAME:  123 kB" of /proc/meminfo.
std::optional<int64_t> meminfo_bytes(std::string_view meminfo, std::string_view name);

}  // namespace octavo
