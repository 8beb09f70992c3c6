// What the system counts of this process.
#pragma once

#include <cstdint>
#include <string_view>

namespace octavo {

// 0: the system does not say.
struct ProcessStats {
  double cpu_s = 0;         // of all threads, in user and system mode
  double start_time_s = 0;  // since 1970
  int64_t resident_bytes = 0;
  int64_t anonymous_bytes = 0;  // of them, what is backed by no file
  int64_t swapped_bytes = 0;
  int64_t virtual_bytes = 0;
  int num_threads = 0;
  int64_t num_open_files = 0;
  int64_t max_open_files = 0;  // the soft limit
};

ProcessStats process_stats();

// Of /proc/self/stat, /proc/self/status and the line btime of /proc/stat; ticks: of a second.
void read_stat(std::string_view stat, int64_t ticks, int64_t boot_time_s, ProcessStats& out);
void read_status(std::string_view status, ProcessStats& out);

}  // namespace octavo
