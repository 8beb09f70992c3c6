#include "server/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/free_memory.h"

namespace octavo {
namespace {

std::string read_file(const char* path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

int64_t number(std::string_view text) {
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Field `index` (from 0) of words parted by one blank each; empty if there are fewer.
std::string_view word(std::string_view text, int index) {
  for (; index > 0; --index) {
    const size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return {};
    text.remove_prefix(blank + 1);
  }
  return text.substr(0, text.find(' '));
}

int64_t boot_time_s() {
  const std::string stat = read_file("/proc/stat");
  const size_t at = stat.find("\nbtime ");
  return at == std::string::npos ? 0 : number(std::string_view(stat).substr(at + 7));
}

int64_t count_open_files() {
  std::error_code error;
  int64_t count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error))
    ++count;
  return count > 0 ? count - 1 : 0;  // one is the folder itself
}

}  // namespace

void read_stat(std::string_view stat, int64_t ticks, int64_t boot_time, ProcessStats& out) {
  // The name of the program, in brackets, may contain anything.
  const size_t bracket = stat.rfind(") ");
  if (bracket == std::string_view::npos || ticks <= 0) return;
  const std::string_view rest = stat.substr(bracket + 2);  // from the third field on
  const auto seconds = [&](int field) {
    return static_cast<double>(number(word(rest, field - 3))) / static_cast<double>(ticks);
  };
  out.cpu_s = seconds(14) + seconds(15);
  out.start_time_s = static_cast<double>(boot_time) + seconds(22);
  out.num_threads = static_cast<int>(number(word(rest, 20 - 3)));
  out.virtual_bytes = number(word(rest, 23 - 3));
}

void read_status(std::string_view status, ProcessStats& out) {
  out.resident_bytes = meminfo_bytes(status, "VmRSS").value_or(0);
  out.anonymous_bytes = meminfo_bytes(status, "RssAnon").value_or(0);
  out.swapped_bytes = meminfo_bytes(status, "VmSwap").value_or(0);
}

ProcessStats process_stats() {
  static const int64_t boot_time = boot_time_s();
  ProcessStats out;
  read_stat(read_file("/proc/self/stat"), sysconf(_SC_CLK_TCK), boot_time, out);
  read_status(read_file("/proc/self/status"), out);
  out.num_open_files = count_open_files();
  if (rlimit limit{}; getrlimit(RLIMIT_NOFILE, &limit) == 0)
    out.max_open_files = static_cast<int64_t>(limit.rlim_cur);
  return out;
}

}  // namespace octavo
