#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "base/lost_file_guard.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  // A reader that goes away is noticed by the failed write.
  std::signal(SIGPIPE, SIG_IGN);
  octavo::end_program_when_mapped_file_is_lost();
  const auto environment = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
  // Errors are values; what arrives here is lack of memory, or a fault of ours.
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    octavo::cli::Terminal terminal;
    return octavo::cli::run(arguments, environment, terminal);
  } catch (const std::bad_alloc&) {
    std::fputs("octavo: error: out of memory [resource_exhausted]\n", stderr);
    return octavo::exit_code(octavo::ErrorCode::resource_exhausted);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "octavo: error: a fault in octavo itself: %s [internal]\n", error.what());
    return 1;
  }
}
