// Errors are values: a fallible function returns Result<T>. The list of codes is closed; each has
// one exit code.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace octavo {

enum class ErrorCode {
  invalid_argument,    // a flag, field or parameter has a value that cannot hold
  not_found,           // a file, model or name does not exist
  io_error,            // the operating system refused to read or write
  corrupt_file,        // a file contradicts its own format
  unsupported,         // well formed, but this program does not do it (I6: unknown means refused)
  context_overflow,    // prompt and answer do not fit the model's context
  resource_exhausted,  // memory, blocks or a stated limit
  template_error,      // the chat template refused the conversation
  numeric_error,       // NaN or infinity where a number was needed (I8)
  cancelled,           // stopped by the caller
};

struct Error {
  ErrorCode code;
  std::string message;  // a sentence that names the thing and says what to change
};

template <class T>
using Result = tl::expected<T, Error>;

[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

// "corrupt_file" and so on: what is printed in brackets after a message.
std::string_view error_name(ErrorCode code);

// The process exit code for each error: 2 for what the caller can fix in the command, 3.. for the
// rest.
int exit_code(ErrorCode code);

}  // namespace octavo

#define OCTAVO_CONCAT_(a, b) a##b
#define OCTAVO_CONCAT(a, b) OCTAVO_CONCAT_(a, b)

// OCTAVO_TRY(auto x, f()): x = the value of f(), or return its error.
#define OCTAVO_TRY(declaration, expression)                                                   \
  auto OCTAVO_CONCAT(octavo_result_, __LINE__) = (expression);                                \
  if (!OCTAVO_CONCAT(octavo_result_, __LINE__))                                               \
    return ::tl::make_unexpected(std::move(OCTAVO_CONCAT(octavo_result_, __LINE__)).error()); \
  declaration = std::move(*OCTAVO_CONCAT(octavo_result_, __LINE__))

// OCTAVO_CHECK_OK(f()): return f()'s error, if any. f() returns Result<void>.
#define OCTAVO_CHECK_OK(expression)                      \
  if (auto octavo_status = (expression); !octavo_status) \
  return ::tl::make_unexpected(std::move(octavo_status).error())
