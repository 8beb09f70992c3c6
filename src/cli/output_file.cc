#include "cli/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "formats/quote.h"

namespace octavo::cli {

Result<void> check_can_write(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path folder = fs::path(path).parent_path();
  if (fs::is_directory(path, ignored))
    return fail(ErrorCode::io_error, fmt::format("{} is a folder; name a file", quote(path)));
  if (!folder.empty() && !fs::is_directory(folder, ignored))
    return fail(ErrorCode::io_error, fmt::format("{} cannot be written: there is no folder {}",
                                                 quote(path), quote(folder.string())));
  return {};
}

Result<void> write_output_file(const std::string& path, std::string_view content) {
  namespace fs = std::filesystem;
  const auto refuse = [&](int error) {
    return fail(ErrorCode::io_error,
                fmt::format("{} cannot be written: {}", quote(path), std::strerror(error)));
  };
  std::error_code ignored;
  // A pipe or a device cannot be replaced.
  const bool in_place = fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
  const std::string written = in_place ? path : fmt::format("{}.{}.tmp", path, getpid());
  errno = 0;
  std::ofstream file(written, std::ios::binary);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  if (!file) {
    const int error = errno != 0 ? errno : EIO;
    if (!in_place) fs::remove(written, ignored);
    return refuse(error);
  }
  if (!in_place && std::rename(written.c_str(), path.c_str()) != 0) {
    const int error = errno;
    fs::remove(written, ignored);
    return refuse(error);
  }
  return {};
}

}  // namespace octavo::cli
