#include "base/free_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace octavo {
namespace {

std::string read_file(const char* path) {
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

// cgroup v2; nothing where there is none or it sets no limit ("max").
std::optional<int64_t> cgroup_room() {
  const auto most = parse_number(read_file("/sys/fs/cgroup/memory.max"));
  const auto used = parse_number(read_file("/sys/fs/cgroup/memory.current"));
  if (!most || !used) return std::nullopt;
  return std::max<int64_t>(*most - *used, 0);
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

std::optional<int64_t> free_memory_bytes() {
  const auto system = meminfo_bytes(read_file("/proc/meminfo"), "MemAvailable");
  const auto cgroup = cgroup_room();
  if (!system || !cgroup) return system ? system : cgroup;
  return std::min(*system, *cgroup);
}

}  // namespace octavo
