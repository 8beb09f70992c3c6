#include "base/file_descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace octavo {

tl::unexpected<Error> system_error(const std::string& path, std::string_view action) {
  const int code = errno;
  if (code == ENOENT || code == ENOTDIR)
    return fail(ErrorCode::not_found, fmt::format("{}: no such file; check the path", path));
  return fail(ErrorCode::io_error, fmt::format("{}: cannot {}: {}", path, action,
                                               std::generic_category().message(code)));
}

}  // namespace octavo
